# SPDX-License-Identifier: Apache-2.0
"""``image generate``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from nova_perfvm.documents.yaml_lines import dump_yaml
from nova_perfvm.generate.flavors import generate_image_properties
from nova_perfvm.generate.properties import extensions
from nova_perfvm.osc.base import PolicyCommand, class_argument, format_argument
from nova_perfvm.osc.formats import ansible, document, shell, terraform

_FORMATS: Final[dict[str, Callable[[dict[str, str]], str]]] = {
    "shell": shell.image_block,
    "properties": lambda properties: shell.property_arguments(properties) + "\n",
    "json": lambda properties: document.as_json({"properties": properties}),
    "yaml": lambda properties: dump_yaml({"properties": properties}),
    "ansible": ansible.image_tasks,
    "terraform": terraform.image_locals,
}


class GenerateImage(PolicyCommand):
    """Print the properties that an image needs for VMs of the policy's classes."""

    arguments = (
        class_argument(),
        format_argument(_FORMATS, shell.HELP, default="shell"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        properties = generate_image_properties(
            self.policy(parsed_args),
            class_name=parsed_args.class_name,
            generators=extensions.load_generators(),
        )
        self.write(_FORMATS[parsed_args.format](properties))
