# SPDX-License-Identifier: Apache-2.0
"""Terraform's own view of generated flavors."""

import json

from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.generate.formats import tools
from tests.recipes import base
from tests.unit.generate.formats import golden


class TerraformTest(base.RecipeCase):
    """Terraform itself, which reads the arguments as it does without a provider."""

    VARIABLE = "PERFVM_TERRAFORM"

    def test_what_terraform_reads_is_what_was_generated(self):
        for policy in golden.POLICIES.values():
            flavors = generate_flavors(policy)
            document = json.loads(tools.terraform(flavors))
            # Values of the same expressions that a provider would be given.
            made = document.pop("resource")["openstack_compute_flavor_v2"]
            del document["terraform"]
            document["output"] = {name: {"value": made[name]} for name in made}
            self.write("main.tf.json", json.dumps(document))
            self.run_tool(self.tool, "init", "-no-color")
            self.run_tool(self.tool, "apply", "-auto-approve", "-no-color")
            read = json.loads(self.run_tool(self.tool, "output", "-json"))
            self.assertEqual(
                {
                    name: golden.values(flavor)
                    for name, flavor in zip(made, flavors, strict=True)
                },
                {name: output["value"] for name, output in read.items()},
            )
