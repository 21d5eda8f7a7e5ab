# SPDX-License-Identifier: Apache-2.0
"""Terraform's and Heat's own view of generated flavors."""

import json
import pathlib

from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.osc.formats import heat, terraform
from tests.recipes import base
from tests.unit.osc.formats import golden

READER = pathlib.Path(__file__).with_name("heat_reader.py")


class TerraformTest(base.RecipeCase):
    """Terraform itself, which reads the arguments as it does without a provider."""

    def setUp(self):
        super().setUp()
        self.program = self.tool("PERFVM_TERRAFORM")

    def terraform(self, *arguments):
        return self.run_tool(self.program, *arguments)

    def test_what_terraform_reads_is_what_was_generated(self):
        for policy in golden.POLICIES.values():
            flavors = generate_flavors(policy)
            document = json.loads(terraform.flavor_resources(flavors))
            # Values of the same expressions that a provider would be given.
            made = document.pop("resource")["openstack_compute_flavor_v2"]
            del document["terraform"]
            document["output"] = {name: {"value": made[name]} for name in made}
            (self.directory / "main.tf.json").write_text(json.dumps(document))
            self.terraform("init", "-no-color")
            self.terraform("apply", "-auto-approve", "-no-color")
            read = json.loads(self.terraform("output", "-json"))
            self.assertEqual(
                {
                    name: golden.values(flavor)
                    for name, flavor in zip(made, flavors, strict=True)
                },
                {name: output["value"] for name, output in read.items()},
            )


class HeatTest(base.RecipeCase):
    """heat-engine's validation, and the properties that a resource would have."""

    def setUp(self):
        super().setUp()
        self.python = self.tool("PERFVM_HEAT") / "bin/python"

    def validated(self, text):
        path = self.directory / "flavors.yaml"
        path.write_text(text)
        command = f'"{self.python}" "{READER}" < "{path}"'
        return json.loads(self.run_tool("sh", "-c", command))

    def test_what_heat_reads_is_what_was_generated(self):
        for policy in golden.POLICIES.values():
            flavors = generate_flavors(policy)
            text = heat.flavor_template(flavors)
            # Heat gives what a template leaves out as well.
            rest = {"tenants": [], "flavorid": None, "rxtx_factor": 1.0}
            expected = [golden.values(flavor) | rest for flavor in flavors]
            found = list(self.validated(text).values())
            key = json.dumps
            self.assertEqual(
                sorted(key(one, sort_keys=True) for one in expected),
                sorted(key(one, sort_keys=True) for one in found),
            )
