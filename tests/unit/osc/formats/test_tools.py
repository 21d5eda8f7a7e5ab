# SPDX-License-Identifier: Apache-2.0
"""What is generated for Ansible, Heat and Terraform, read as each of them reads it.

Heat itself validates its templates in tests/recipes.
"""

import dataclasses
import json

import hcl2
import testtools
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nova_perfvm.generate.flavors import generate_flavors, generate_image_properties
from nova_perfvm.osc.formats import ansible, heat, terraform
from tests.unit.osc.formats import golden

# Of openstack.cloud.compute_flavor in collection openstack.cloud 2, OS::Nova::Flavor
# in Heat 27, and openstack_compute_flavor_v2 in the provider's version 3.4.0.
ARGUMENTS = {
    "name": str,
    "ram": int,
    "vcpus": int,
    "disk": int,
    "ephemeral": int,
    "swap": int,
    "is_public": bool,
    "extra_specs": dict,
}
# A mapping of one key that has such a name is a function of Heat's.
FUNCTIONS = ("get_", "list_", "map_", "str_", "repeat", "digest", "yaql", "if", "Fn::")
HOSTILE = 'yes: a ${b} $${c} %{if} {{ x }} {% y %} "e" \\ \\n \n\t\' # é ö $'
BUILT_IN = golden.POLICIES["built-in"]
PROPERTIES = generate_image_properties(BUILT_IN)


class Unsafe(str):
    __slots__ = ()


class Loader(yaml.SafeLoader):
    """YAML as Ansible reads it."""


Loader.add_constructor("!unsafe", lambda loader, node: Unsafe(node.value))


def tasks(text):
    return yaml.load(text, Loader=Loader)  # a subclass of SafeLoader


def of_ansible(text):
    for task in tasks(text):
        arguments = task.get("openstack.cloud.compute_flavor")
        if arguments:
            assert arguments.pop("state") == "present"
            assert task["name"] == f"Flavor {arguments['name']}"
            yield arguments


def of_heat(text):
    template = yaml.safe_load(text)
    assert template["heat_template_version"] == "2018-08-31"
    for resource in template["resources"].values():
        assert resource["type"] == "OS::Nova::Flavor"
        yield resource["properties"]


def plain(value):
    """Return what the parser gives, with every text as Terraform sees it."""
    if isinstance(value, dict):
        added = {"__is_block__", "__comments__"}
        return {
            plain(key): plain(one) for key, one in value.items() if key not in added
        }
    if isinstance(value, list):
        return [plain(one) for one in value]
    if not isinstance(value, str) or not value.startswith('"'):
        return value
    # Whatever is left of a template is none that is quoted.
    assert "${" not in value.replace("$${", ""), value
    assert "%{" not in value.replace("%%{", ""), value
    # Other escapes are those of JSON.
    return json.loads(value.replace("$${", "${").replace("%%{", "%{"))


def parsed(text):
    return plain(hcl2.loads(text))


def of_terraform(text):
    for resource in parsed(text)["resource"]:
        ((arguments,),) = [named.values() for named in resource.values()]
        assert list(resource) == ["openstack_compute_flavor_v2"]
        yield arguments


TOOLS = {
    "ansible": (ansible.flavor_tasks, of_ansible),
    "heat.yaml": (heat.flavor_template, of_heat),
    "tf": (terraform.flavor_resources, of_terraform),
}


class FlavorsTest(testtools.TestCase):
    def test_what_is_read_is_what_was_generated(self):
        for name, (render, read) in TOOLS.items():
            for policy in golden.POLICIES.values():
                flavors = generate_flavors(policy)
                found = list(read(render(flavors)))
                self.assertEqual(list(map(golden.values, flavors)), found, name)
                for arguments in found:
                    types = {key: type(value) for key, value in arguments.items()}
                    self.assertEqual(ARGUMENTS, types, name)
                    specs = arguments["extra_specs"]
                    # A YAML boolean would be written as True, which Nova refuses.
                    self.assertEqual({str}, set(map(type, specs.values())), name)
                    self.assertFalse(
                        [key for key in specs if key.startswith(FUNCTIONS)]
                    )

    def test_word_for_word(self):
        for suffix in ("heat.yaml", "tf"):
            for flavors, text in golden.files(suffix):
                self.assertEqual(text, TOOLS[suffix][0](flavors))

    def test_texts_of_a_policy_are_texts(self):
        (flavor, *_) = generate_flavors(BUILT_IN)
        specs = {HOSTILE: HOSTILE, "for": "true"}
        flavor = dataclasses.replace(flavor, name=HOSTILE, extra_specs=specs)
        for name, (render, read) in TOOLS.items():
            (found,) = read(render([flavor]))
            self.assertEqual(golden.values(flavor), found, name)
        (found,) = of_ansible(ansible.flavor_tasks([flavor]))
        for text in (found["name"], found["extra_specs"][HOSTILE]):
            self.assertIsInstance(text, Unsafe)

    def test_names_for_placement_stand_first(self):
        trait = "CUSTOM_PERFVM_HIGH_PERFORMANCE"
        flavors = generate_flavors(BUILT_IN)
        first, *others = tasks(ansible.flavor_tasks(flavors))
        wanted = {"state": "present", "id": trait}
        self.assertEqual(wanted, first["openstack.cloud.trait"])
        self.assertEqual([], [t for t in others if "openstack.cloud.trait" in t])
        bare = dataclasses.replace(flavors[0], extra_specs={"hw:cpu_policy": "shared"})
        for name, begin in (("heat.yaml", "heat_template"), ("tf", "terraform {")):
            render, _ = TOOLS[name]
            head, _, _ = render(flavors).partition(begin)
            self.assertIn(f"trait create {trait}", head)
            self.assertEqual({"#"}, {line[:1] for line in head.splitlines() if line})
            self.assertTrue(render([bare]).startswith(begin))


class AnsibleImageTest(testtools.TestCase):
    def test_only_an_existing_image_is_changed(self):
        find, stop, change = tasks(ansible.image_tasks(PROPERTIES, "debian"))
        self.assertEqual({"image": "debian"}, find["openstack.cloud.image_info"])
        self.assertIn(find["register"], stop["ansible.builtin.assert"]["that"][0])
        arguments = change["openstack.cloud.image"]
        self.assertEqual(
            {"state": str, "name": str, "visibility": str, "properties": dict},
            {key: type(argument) for key, argument in arguments.items()},
        )
        self.assertEqual(PROPERTIES, arguments["properties"])

    def test_a_variable_names_the_image_and_a_name_is_no_template(self):
        for image, text, kind in (
            (None, "{{ perfvm_image }}", str),
            ("{{ x }}", "{{ x }}", Unsafe),
        ):
            (find, *_) = tasks(ansible.image_tasks(PROPERTIES, image))
            found = find["openstack.cloud.image_info"]["image"]
            self.assertEqual((text, kind), (found, type(found)))


class TerraformTest(testtools.TestCase):
    def test_the_provider_is_named(self):
        (block,) = parsed(terraform.flavor_resources(generate_flavors(BUILT_IN)))[
            "terraform"
        ]
        source = {"source": "terraform-provider-openstack/openstack"}
        self.assertEqual([{"openstack": source}], block["required_providers"])

    @given(st.text(st.characters(codec="utf-8"), max_size=20))
    def test_a_text_is_itself(self, text):
        quoted = terraform.quoted(text)
        self.assertEqual(text, plain(quoted))
        self.assertNotIn("\n", quoted)

    def test_properties_of_an_image(self):
        text = (golden.DIRECTORY / "images.tf").read_text()
        self.assertEqual(text, terraform.image_locals(PROPERTIES))
        for properties in (PROPERTIES, {}):
            self.assertEqual(
                {"locals": [{"perfvm_image_properties": properties}]},
                parsed(terraform.image_locals(properties)),
            )
