# SPDX-License-Identifier: Apache-2.0
"""What is generated for Ansible and Terraform, read as each of them reads it.

Terraform itself reads it in tests/recipes.
"""

import dataclasses
import json

import testtools
import yaml

from nova_perfvm.generate.flavors import FlavorError, generate_flavors
from nova_perfvm.generate.formats import tools
from tests.unit.generate.formats import golden

# Of openstack.cloud.compute_flavor in collection openstack.cloud 2, and
# openstack_compute_flavor_v2 in the provider's version 3.4.0.
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
HOSTILE = 'yes: a ${b} $${c} %{if} {{ x }} {% y %} "e" \\ \\n \n\t\' # é ö $'
BUILT_IN = golden.POLICIES["built-in"]
TRAIT = "CUSTOM_PERFVM_HIGH_PERFORMANCE"


class Unsafe(str):
    __slots__ = ()


class Loader(yaml.SafeLoader):
    """YAML as Ansible reads it."""


Loader.add_constructor("!unsafe", lambda loader, node: Unsafe(node.value))


def tasks_of(text):
    return yaml.load(text, Loader=Loader)  # a subclass of SafeLoader


def of_ansible(text):
    for task in tasks_of(text):
        arguments = task.get("openstack.cloud.compute_flavor")
        if arguments:
            assert arguments.pop("state") == "present"
            assert task["name"] == f"Flavor {arguments['name']}"
            yield arguments


def plain(value):
    """Return a value with every text as Terraform sees it."""
    if isinstance(value, dict):
        return {plain(key): plain(one) for key, one in value.items()}
    if not isinstance(value, str):
        return value
    # Whatever is left of a template is none that is quoted.
    assert "${" not in value.replace("$${", ""), value
    assert "%{" not in value.replace("%%{", ""), value
    return value.replace("$${", "${").replace("%%{", "%{")


def of_terraform(text):
    yield from plain(
        json.loads(text)["resource"]["openstack_compute_flavor_v2"]
    ).values()


TOOLS = {
    "ansible": (tools.ansible, of_ansible),
    "terraform": (tools.terraform, of_terraform),
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

    def test_texts_of_a_policy_are_texts(self):
        (flavor, *_) = generate_flavors(BUILT_IN)
        specs = {HOSTILE: HOSTILE, "for": "true"}
        flavor = dataclasses.replace(flavor, name=HOSTILE, extra_specs=specs)
        for name, (render, read) in TOOLS.items():
            (found,) = read(render([flavor]))
            self.assertEqual(golden.values(flavor), found, name)
        (found,) = of_ansible(tools.ansible([flavor]))
        for text in (found["name"], found["extra_specs"][HOSTILE]):
            self.assertIsInstance(text, Unsafe)

    def test_names_of_resources(self):
        (flavor, *_) = generate_flavors(BUILT_IN)
        for names, expected in (
            (["hp.20c.64g", "2 ö-4g"], ["hp_20c_64g", "_2___4g"]),
            (["a.b", "a_b"], None),
        ):
            flavors = [dataclasses.replace(flavor, name=name) for name in names]
            render = tools.terraform
            if expected is None:
                error = self.assertRaises(FlavorError, render, flavors)
                self.assertIn("'a.b' and 'a_b'", str(error))
            else:
                found = json.loads(render(flavors))["resource"]
                self.assertEqual(expected, list(found["openstack_compute_flavor_v2"]))

    def test_names_for_placement_stand_first(self):
        flavors = generate_flavors(BUILT_IN)
        first, *others = tasks_of(tools.ansible(flavors))
        wanted = {"state": "present", "id": TRAIT}
        self.assertEqual(wanted, first["openstack.cloud.trait"])
        self.assertEqual([], [t for t in others if "openstack.cloud.trait" in t])
        document = json.loads(tools.terraform(flavors))
        self.assertTrue(document["//"][-1].endswith(f"trait create {TRAIT}"))
        self.assertEqual(
            {"openstack": {"source": "terraform-provider-openstack/openstack"}},
            document["terraform"]["required_providers"],
        )
        bare = dataclasses.replace(flavors[0], extra_specs={"hw:cpu_policy": "shared"})
        self.assertEqual([], json.loads(tools.terraform([bare]))["//"])
