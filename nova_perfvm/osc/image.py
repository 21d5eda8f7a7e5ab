# SPDX-License-Identifier: Apache-2.0
"""``image generate``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from nova_perfvm.generate.flavors import generate_image_properties
from nova_perfvm.generate.formats import document, shell
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PolicyCommand
from nova_perfvm.osc.flavor import FORMAT_HELP

# Ansible and Terraform read the JSON.
_FORMATS: Final[dict[str, Callable[[dict[str, str]], str]]] = {
    "shell": shell.image_block,
    "properties": lambda properties: shell.property_arguments(properties) + "\n",
    **document.formats(lambda properties: {"properties": properties}),
}


class GenerateImage(PolicyCommand):
    """Print the properties that an image needs for VMs of the policy's classes."""

    arguments = (
        opt.vm_class(),
        opt.formats(_FORMATS, FORMAT_HELP),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        properties = generate_image_properties(
            self.policy(parsed_args),
            class_name=parsed_args.class_name,
        )
        self.write(_FORMATS[parsed_args.format](properties))
