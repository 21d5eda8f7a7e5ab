# SPDX-License-Identifier: Apache-2.0
"""``image generate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.flavors import classes_of, generate_image_properties
from nova_perfvm.generate.properties import extensions
from nova_perfvm.osc.base import OfflineCommand, class_argument
from nova_perfvm.osc.formats import ansible, document, shell

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from nova_perfvm.policy import VMClass


class GenerateImage(OfflineCommand):
    """Print the properties that an image needs."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add the class, the image and the format."""
        parser = super().get_parser(prog_name)
        class_argument(parser)
        parser.add_argument(
            "--image",
            metavar="IMAGE",
            help="name or ID (default: the shell variable IMAGE, Ansible's "
            "perfvm_image)",
        )
        parser.add_argument(
            "-f",
            "--format",
            choices=("shell", "properties", "json", "yaml", "ansible"),
            default="shell",
            help="default: %(default)s, commands of the openstack client; "
            "properties: their --property arguments only",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Generate the properties and print them."""
        image = parsed_args.image
        if image is not None and (not image.strip() or image.startswith("-")):
            raise PerfVMError(
                f"{image!r} is no name that the openstack client takes: use the "
                "image's ID"
            )
        policy = self.policy(parsed_args)
        properties = generate_image_properties(
            policy, class_name=parsed_args.class_name, generators=extensions.load()
        )
        classes = classes_of(policy, parsed_args.class_name)
        self.write(render(parsed_args.format, properties, image, classes))


def render(
    output: str,
    properties: Mapping[str, str],
    image: str | None,
    classes: Sequence[VMClass],
) -> str:
    """Return the properties in one of the formats.

    :param image: name or ID; None for a placeholder that fails when it is unset
    """
    if output == "shell":
        return shell.image_block(properties, image, classes)
    if output == "properties":
        return shell.property_arguments(properties) + "\n"
    if output == "ansible":
        return ansible.image_tasks(properties, image)
    named: dict[str, Any] = {} if image is None else {"image": image}
    named["properties"] = dict(properties)
    return document.as_json(named) if output == "json" else document.as_yaml(named)
