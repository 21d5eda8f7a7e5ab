# SPDX-License-Identifier: Apache-2.0
"""``flavor generate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.osc.base import OfflineCommand, flavor_arguments, flavors_of
from nova_perfvm.osc.formats import ansible, document, shell

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from nova_perfvm.generate.flavors import PolicyFlavor


def _json(flavors: Sequence[PolicyFlavor]) -> str:
    return document.as_json([document.flavor_document(flavor) for flavor in flavors])


def _yaml(flavors: Sequence[PolicyFlavor]) -> str:
    return document.as_yaml([document.flavor_document(flavor) for flavor in flavors])


def _properties(flavors: Sequence[PolicyFlavor]) -> str:
    """Return one line for each class; a comment before it if there are several."""
    by_class = {flavor.class_name: flavor.extra_specs for flavor in flavors}
    if len(by_class) == 1:
        return "".join(shell.property_arguments(s) + "\n" for s in by_class.values())
    return "".join(
        f"# class {name}\n{shell.property_arguments(specs)}\n"
        for name, specs in by_class.items()
    )


_FORMATS: Final[dict[str, Callable[[Sequence[PolicyFlavor]], str]]] = {
    "shell": shell.flavor_block,
    "properties": _properties,
    "json": _json,
    "yaml": _yaml,
    "ansible": ansible.flavor_tasks,
}


class GenerateFlavor(OfflineCommand):
    """Print the policy's flavors with all their extra specs."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add what selects the flavors, and their format."""
        parser = super().get_parser(prog_name)
        flavor_arguments(parser)
        parser.add_argument(
            "-f",
            "--format",
            choices=tuple(_FORMATS),
            default="shell",
            help="default: %(default)s, commands of the openstack client; "
            "properties: their --property arguments only",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Generate the flavors and print them."""
        flavors = flavors_of(self.policy(parsed_args), parsed_args)
        self.write(_FORMATS[parsed_args.format](flavors))
