# SPDX-License-Identifier: Apache-2.0
"""Configuration for Terraform, read by a parser of its language."""

import dataclasses
import json

import hcl2
import testtools
from hypothesis import given
from hypothesis import strategies as st

from nova_perfvm.generate.flavors import generate_flavors, generate_image_properties
from nova_perfvm.osc.formats import terraform
from tests.unit.osc.formats import golden

# Arguments of openstack_compute_flavor_v2 in the provider's version 3.4.0.
ARGUMENTS = {
    *("name", "ram", "vcpus", "disk", "ephemeral", "swap", "is_public"),
    "extra_specs",
}
# What the parser adds.
BESIDES = {"__is_block__", "__comments__"}
HOSTILE = 'a ${b} $${c} %{if} %%{d} "e" \\ \\n \n\t\' # é ö $'


def plain(value):
    """Return what the parser gives, with every text as Terraform sees it."""
    if isinstance(value, dict):
        return {
            plain(key): plain(one) for key, one in value.items() if key not in BESIDES
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


def parse(text):
    return plain(hcl2.loads(text))


def resources(text):
    """Return the arguments of flavors by their resources' names."""
    found = {}
    for resource in parse(text).get("resource", []):
        ((kind, named),) = resource.items()
        assert kind == "openstack_compute_flavor_v2", kind
        ((name, arguments),) = named.items()
        assert name not in found, name
        found[name] = arguments
    return found


class FlavorResourcesTest(testtools.TestCase):
    def test_word_for_word(self):
        for flavors, text in golden.files("tf"):
            self.assertEqual(text, terraform.flavor_resources(flavors))

    def test_what_is_read_is_what_was_generated(self):
        for flavors, text in golden.files("tf"):
            found = list(resources(text).values())
            self.assertEqual([golden.values(flavor) for flavor in flavors], found)

    def test_only_arguments_that_the_provider_has(self):
        for _, text in golden.files("tf"):
            for arguments in resources(text).values():
                self.assertEqual(ARGUMENTS, set(arguments))

    def test_the_provider_is_named(self):
        ((block,),) = [parse(text)["terraform"] for _, text in golden.files("tf")][:1]
        (providers,) = block["required_providers"]
        self.assertEqual(
            {"openstack": {"source": "terraform-provider-openstack/openstack"}},
            providers,
        )

    def test_names_for_placement_stand_first(self):
        for flavors, text in golden.files("tf"):
            head = text[: text.index("terraform {")]
            self.assertIn("# ", head)
            self.assertIn("trait create CUSTOM_PERFVM_HIGH_PERFORMANCE", head)
            (bare,) = flavors[:1]
            bare = dataclasses.replace(bare, extra_specs={"hw:cpu_policy": "shared"})
            self.assertTrue(terraform.flavor_resources([bare]).startswith("terraform"))

    def test_no_text_of_a_policy_is_a_template(self):
        (flavor, *_) = generate_flavors(golden.POLICIES["built-in"])
        flavor = dataclasses.replace(
            flavor, name=HOSTILE, extra_specs={HOSTILE: HOSTILE, "for": "x"}
        )
        (found,) = resources(terraform.flavor_resources([flavor])).values()
        self.assertEqual(golden.values(flavor), found)


class QuotedTest(testtools.TestCase):
    @given(st.text(st.characters(codec="utf-8"), max_size=20))
    def test_a_text_is_itself(self, text):
        quoted = terraform.quoted(text)
        self.assertEqual(text, plain(quoted))
        self.assertNotIn("\n", quoted)

    def test_escapes(self):
        for text, quoted in (
            ("a", '"a"'),
            ("${a}", '"$${a}"'),
            ("$${a}", '"$$${a}"'),
            ("%{a}", '"%%{a}"'),
            ('"\\', r'"\"\\"'),
            ("\n", r'"\u000a"'),
        ):
            self.assertEqual(quoted, terraform.quoted(text))


class ImageLocalsTest(testtools.TestCase):
    def test_word_for_word(self):
        properties = generate_image_properties(golden.POLICIES["built-in"])
        text = (golden.DIRECTORY / "images.tf").read_text()
        self.assertEqual(text, terraform.image_locals(properties))
        self.assertEqual(
            {"locals": [{"perfvm_image_properties": properties}]}, parse(text)
        )

    def test_no_properties(self):
        found = parse(terraform.image_locals({}))
        self.assertEqual({"locals": [{"perfvm_image_properties": {}}]}, found)
