# SPDX-License-Identifier: Apache-2.0
"""``flavor generate``, and the arguments that select the policy's flavors."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from shlex import quote
from typing import Final

from nova_perfvm.generate.flavors import PolicyFlavor, generate_flavors
from nova_perfvm.generate.formats import document, shell, tools
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import PolicyCommand
from nova_perfvm.policy import Policy

# Select the policy's flavors, and change their names and properties.
FLAVOR_ARGUMENTS: Final = (
    opt.vm_class(),
    opt.option(
        "--memory-gb GB",
        "flavors with so much memory instead of the policy's, for classes with a "
        "fixed number of vCPUs",
        type=int,
        nargs="+",
        action="extend",
    ),
    opt.option("--prefix", "put this before each flavor's name", default=""),
    opt.flag(
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
    )


def sync_command(parsed_args: argparse.Namespace) -> str:
    chosen = (
        *(("--class", parsed_args.class_name) if parsed_args.class_name else ()),
        *(("--memory-gb", *parsed_args.memory_gb) if parsed_args.memory_gb else ()),
        *(("--prefix", parsed_args.prefix) if parsed_args.prefix else ()),
        *(["--isolated-aggregates"] if parsed_args.isolated_aggregates else ()),
    )
    return " ".join(("openstack perfvm flavor sync", *(quote(str(w)) for w in chosen)))


FORMAT_HELP: Final = (
    "default: %(default)s, commands of the openstack client; properties: their "
    "--property arguments only"
)
_FORMATS: Final[dict[str, Callable[[Sequence[PolicyFlavor]], str]]] = {
    "shell": shell.flavor_block,
    "properties": shell.flavor_properties,
    **document.formats(document.flavor_documents),
    "ansible": tools.ansible,
    "terraform": tools.terraform,
}


class GenerateFlavor(PolicyCommand):
    """Print the policy's flavors with all their extra specs."""

    arguments = (
        *FLAVOR_ARGUMENTS,
        opt.formats(_FORMATS, FORMAT_HELP),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        flavors = flavors_of(self.policy(parsed_args), parsed_args)
        self.write(_FORMATS[parsed_args.format](flavors))
