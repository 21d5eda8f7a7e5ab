# SPDX-License-Identifier: Apache-2.0
"""``flavor generate``, and the arguments that select the policy's flavors."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from shlex import quote
from typing import Final

from nova_perfvm.documents.yaml_lines import dump_yaml
from nova_perfvm.generate.flavors import PolicyFlavor, generate_flavors
from nova_perfvm.generate.properties import extensions
from nova_perfvm.osc.base import (
    PolicyCommand,
    argument,
    class_argument,
    flag,
    format_argument,
)
from nova_perfvm.osc.formats import ansible, document, shell, terraform
from nova_perfvm.policy import Policy

# Select the policy's flavors, and change their names and properties.
FLAVOR_ARGUMENTS: Final = (
    class_argument(),
    argument(
        "--memory-gb",
        type=int,
        nargs="+",
        action="extend",
        metavar="GB",
        help="flavors with so much memory instead of the policy's, for classes with a "
        "fixed number of vCPUs",
    ),
    argument("--prefix", default="", help="put this before each flavor's name"),
    flag(
        "--isolated-aggregates",
        "general flavors do not forbid the trait of hosts with slots: for clouds in "
        "which an isolated aggregate keeps general VMs off these hosts, because other "
        "flavors cannot be changed",
    ),
)


def flavors_of(
    policy: Policy, parsed_args: argparse.Namespace
) -> tuple[PolicyFlavor, ...]:
    """Return the flavors that FLAVOR_ARGUMENTS select.

    :raises FlavorError: when the policy has no such flavor
    """
    return generate_flavors(
        policy,
        class_name=parsed_args.class_name,
        memory_gb=parsed_args.memory_gb,
        prefix=parsed_args.prefix,
        isolated_aggregates=parsed_args.isolated_aggregates,
        generators=extensions.load_generators(),
    )


def sync_command(parsed_args: argparse.Namespace) -> str:
    chosen = (
        *(("--class", parsed_args.class_name) if parsed_args.class_name else ()),
        *(("--memory-gb", *parsed_args.memory_gb) if parsed_args.memory_gb else ()),
        *(("--prefix", parsed_args.prefix) if parsed_args.prefix else ()),
        *(["--isolated-aggregates"] if parsed_args.isolated_aggregates else ()),
    )
    return " ".join(("openstack perfvm flavor sync", *(quote(str(w)) for w in chosen)))


def _properties(flavors: Sequence[PolicyFlavor]) -> str:
    """Return a line of --property arguments for each class, with the class's name."""
    by_class = {flavor.class_name: flavor.extra_specs for flavor in flavors}
    return "".join(
        (f"# class {name}\n" if len(by_class) > 1 else "")
        + f"{shell.property_arguments(specs)}\n"
        for name, specs in by_class.items()
    )


_FORMATS: Final[dict[str, Callable[[Sequence[PolicyFlavor]], str]]] = {
    "shell": shell.flavor_block,
    "properties": _properties,
    "json": lambda flavors: document.as_json(document.flavor_documents(flavors)),
    "yaml": lambda flavors: dump_yaml(document.flavor_documents(flavors)),
    "ansible": ansible.flavor_tasks,
    "terraform": terraform.flavor_resources,
}


class GenerateFlavor(PolicyCommand):
    """Print the policy's flavors with all their extra specs."""

    arguments = (
        *FLAVOR_ARGUMENTS,
        format_argument(_FORMATS, shell.HELP, default="shell"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        flavors = flavors_of(self.policy(parsed_args), parsed_args)
        self.write(_FORMATS[parsed_args.format](flavors))
