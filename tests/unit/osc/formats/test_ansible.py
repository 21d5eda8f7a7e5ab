# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools
import yaml

from nova_perfvm.generate.flavors import generate_flavors, generate_image_properties
from nova_perfvm.osc.formats import ansible
from nova_perfvm.policy import loader

POLICY = loader.load()

# Arguments of the modules in collection openstack.cloud 2, and their types.
FLAVOR_ARGUMENTS = {
    "state": str,
    "name": str,
    "ram": int,
    "vcpus": int,
    "disk": int,
    "ephemeral": int,
    "swap": int,
    "is_public": bool,
    "extra_specs": dict,
}
IMAGE_ARGUMENTS = {"state": str, "name": str, "visibility": str, "properties": dict}


class Unsafe(str):
    __slots__ = ()


class Loader(yaml.SafeLoader):
    """YAML as Ansible reads it."""


Loader.add_constructor("!unsafe", lambda loader, node: Unsafe(node.value))


def load(text):
    return yaml.load(text, Loader=Loader)  # a subclass of SafeLoader


def flavor_tasks(flavors):
    tasks = load(ansible.flavor_tasks(flavors))
    return [task for task in tasks if "openstack.cloud.compute_flavor" in task]


class FlavorTasksTest(testtools.TestCase):
    def test_traits_come_first(self):
        first, *others = load(ansible.flavor_tasks(generate_flavors(POLICY)))
        trait = {"state": "present", "id": "CUSTOM_PERFVM_HIGH_PERFORMANCE"}
        self.assertEqual(trait, first["openstack.cloud.trait"])
        self.assertEqual([], [t for t in others if "openstack.cloud.trait" in t])

    def test_one_task_for_each_flavor(self):
        flavors = generate_flavors(POLICY)
        tasks = flavor_tasks(flavors)
        self.assertEqual(len(flavors), len(tasks))
        for flavor, task in zip(flavors, tasks, strict=True):
            arguments = task["openstack.cloud.compute_flavor"]
            self.assertEqual(f"Flavor {flavor.name}", task["name"])
            self.assertEqual(
                (flavor.name, flavor.memory_mb, flavor.vcpus, flavor.root_gb),
                tuple(arguments[key] for key in ("name", "ram", "vcpus", "disk")),
            )
            self.assertEqual(flavor.extra_specs, arguments["extra_specs"])

    def test_only_arguments_that_the_module_has(self):
        for task in flavor_tasks(generate_flavors(POLICY)):
            arguments = task["openstack.cloud.compute_flavor"]
            self.assertEqual(
                FLAVOR_ARGUMENTS, {key: type(arg) for key, arg in arguments.items()}
            )

    def test_extra_specs_stay_texts(self):
        """Ansible would write True for a YAML boolean, which Nova refuses."""
        (task, *_) = flavor_tasks(generate_flavors(POLICY))
        specs = task["openstack.cloud.compute_flavor"]["extra_specs"]
        self.assertEqual({str}, {type(value) for value in specs.values()})

    def test_no_text_of_a_policy_is_a_template(self):
        (flavor,) = generate_flavors(POLICY, memory_gb=[64], prefix="{{ 1 + 1 }}'\"")
        flavor = dataclasses.replace(flavor, extra_specs={"a:b": "{% x %}"})
        (task,) = load(ansible.flavor_tasks([flavor]))
        arguments = task["openstack.cloud.compute_flavor"]
        for text in (task["name"], arguments["name"], arguments["extra_specs"]["a:b"]):
            self.assertIsInstance(text, Unsafe)
        self.assertEqual(flavor.name, arguments["name"])


class ImageTasksTest(testtools.TestCase):
    properties = generate_image_properties(POLICY)

    def test_only_an_existing_image_is_changed(self):
        find, stop, change = load(ansible.image_tasks(self.properties, "debian"))
        self.assertEqual({"image": "debian"}, find["openstack.cloud.image_info"])
        self.assertIn(find["register"], stop["ansible.builtin.assert"]["that"][0])
        arguments = change["openstack.cloud.image"]
        self.assertEqual(
            IMAGE_ARGUMENTS, {key: type(arg) for key, arg in arguments.items()}
        )
        self.assertEqual(self.properties, arguments["properties"])

    def test_a_variable_names_the_image(self):
        (find, *_) = load(ansible.image_tasks(self.properties, None))
        image = find["openstack.cloud.image_info"]["image"]
        self.assertEqual("{{ perfvm_image }}", image)
        self.assertNotIsInstance(image, Unsafe)

    def test_a_name_is_no_template(self):
        (find, *_) = load(ansible.image_tasks(self.properties, "{{ x }}"))
        self.assertIsInstance(find["openstack.cloud.image_info"]["image"], Unsafe)
