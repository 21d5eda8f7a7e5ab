# SPDX-License-Identifier: Apache-2.0
"""``image generate``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.generate.flavors import classes_of, generate_image_properties
from nova_perfvm.generate.properties import extensions
from nova_perfvm.osc.base import (
    PolicyCommand,
    argument,
    class_argument,
    format_argument,
)
from nova_perfvm.osc.formats import ansible, document, shell, terraform
from nova_perfvm.policy import VMClass


class GenerateImage(PolicyCommand):
    """Print the properties that an image needs."""

    arguments = (
        class_argument(),
        argument(
            "--image",
            metavar="IMAGE",
            help="name or ID (default: the shell variable IMAGE, Ansible's "
            "perfvm_image)",
        ),
        format_argument(
            ("shell", "properties", "json", "yaml", "ansible", "terraform"),
            shell.HELP,
            default="shell",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Generate the properties and print them."""
        image = parsed_args.image
        if image is not None and (not image.strip() or image.startswith("-")):
            raise PerfVMError(
                f"{image!r} is no name that the openstack client takes: use the "
                "image's ID"
            )
        if image is not None and parsed_args.format == "terraform":
            raise PerfVMError(
                "for terraform, the image is a resource of yours, which takes the "
                "properties from here: leave --image out"
            )
        policy = self.policy(parsed_args)
        properties = generate_image_properties(
            policy,
            class_name=parsed_args.class_name,
            generators=extensions.load_generators(),
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
    if output == "terraform":
        return terraform.image_locals(properties)
    named = {} if image is None else {"image": image}
    write = document.as_json if output == "json" else document.as_yaml
    return write({**named, "properties": dict(properties)})
