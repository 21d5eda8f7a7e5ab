# SPDX-License-Identifier: Apache-2.0
"""Heat's templates, by the schema of Heat's resource.

Heat itself validates them in tests/recipes.
"""

import dataclasses

import testtools
import yaml

from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.osc.formats import heat
from tests.unit.osc.formats import golden

# Of properties_schema of OS::Nova::Flavor in Heat 27.
PROPERTIES = {
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


class FlavorTemplateTest(testtools.TestCase):
    def test_word_for_word(self):
        for flavors, text in golden.files("heat.yaml"):
            self.assertEqual(text, heat.flavor_template(flavors))

    def test_what_is_read_is_what_was_generated(self):
        for flavors, text in golden.files("heat.yaml"):
            template = yaml.safe_load(text)
            self.assertEqual("2018-08-31", template["heat_template_version"])
            self.assertEqual(
                [
                    {"type": "OS::Nova::Flavor", "properties": golden.values(flavor)}
                    for flavor in flavors
                ],
                list(template["resources"].values()),
            )

    def test_only_properties_that_the_resource_has(self):
        for _, text in golden.files("heat.yaml"):
            for resource in yaml.safe_load(text)["resources"].values():
                found = {k: type(v) for k, v in resource["properties"].items()}
                self.assertEqual(PROPERTIES, found)

    def test_extra_specs_stay_texts_and_are_no_function(self):
        for _, text in golden.files("heat.yaml"):
            for resource in yaml.safe_load(text)["resources"].values():
                specs = resource["properties"]["extra_specs"]
                self.assertEqual({str}, {type(value) for value in specs.values()})
                self.assertGreater(len(specs), 1)
                self.assertFalse([key for key in specs if key.startswith(FUNCTIONS)])

    def test_texts_of_a_policy_are_texts(self):
        (flavor, *_) = generate_flavors(golden.POLICIES["built-in"])
        name = "yes: 'no' \"{{ é }}\" # %"
        flavor = dataclasses.replace(flavor, name=name, extra_specs={name: "true"})
        (resource,) = yaml.safe_load(heat.flavor_template([flavor]))[
            "resources"
        ].values()
        self.assertEqual(golden.values(flavor), resource["properties"])
