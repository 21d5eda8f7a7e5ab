# SPDX-License-Identifier: Apache-2.0
"""``policy show``, ``policy check`` without a cloud, and ``policy diff``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from cliff.lister import Lister

from nova_perfvm.diagnose.policy_diff import Difference, compare, compare_servers
from nova_perfvm.generate.properties import extensions
from nova_perfvm.osc.base import (
    POLICY_FILE,
    PerfVMCommand,
    PolicyCommand,
    argument,
    format_argument,
    policy_name,
    policy_path,
    read_policy,
)
from nova_perfvm.osc.formats import document
from nova_perfvm.osc.judging import JudgingCommand
from nova_perfvm.osc.snapshot import SNAPSHOT, look
from nova_perfvm.policy import Policy, advice, cell_slots, loader, shape_slots
from nova_perfvm.printable import number_of

_FORMATS: Final[dict[str, Callable[[Policy], str]]] = {
    "yaml": document.policy_yaml,
    "json": document.policy_json,
}


class ShowPolicy(PolicyCommand):
    """Print the effective policy, every key written out, and its hash."""

    arguments = (
        format_argument(
            sorted(_FORMATS),
            "default: %(default)s, the format of policy files",
            default="yaml",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        policy = read_policy(policy_name(parsed_args))
        self.write(_FORMATS[parsed_args.format](policy))


class CheckPolicy(JudgingCommand, PolicyCommand):
    """List every mistake of a policy file, or summarize a valid policy.

    Exits with 0 if the policy is valid, else with 2.
    """

    judges = "policy"
    arguments = (POLICY_FILE,)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        source = policy_path(parsed_args)
        policy = read_policy(source)
        self.write(summary(policy, loader.title(source)))
        for found in advice(policy):
            self.app.stderr.write(f"note: {found.code}: {found.observed}\n")


class DiffPolicy(PerfVMCommand, Lister):
    """List the effects of a change of the policy.

    On flavors, image properties and hosts; with a cloud or a snapshot also the
    servers that the new policy would not allow.
    """

    arguments = (
        argument("old", metavar="OLD", help="present policy file"),
        argument("new", metavar="NEW", help="new policy file"),
        SNAPSHOT,
    )

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], list[Difference]]:
        old, new = loader.load(parsed_args.old), read_policy(parsed_args.new)
        found = compare(old, new, extensions.load_generators())
        if parsed_args.snapshot is not None or self.has_cloud:
            seen = look(self, parsed_args.snapshot)
            found += compare_servers(old, new, seen)
        return ("Type", "Name", "What", "Old", "New"), found


def summary(policy: Policy, source: str) -> str:
    """Return a policy's hash, its classes, and the VMs that fit each host shape."""
    lines = [f"{source}: valid", f"SHA-256 {policy.digest}"]
    for vm_class in policy.classes:
        size = f"{vm_class.vcpus} vCPUs" if vm_class.vcpus else "any number of vCPUs"
        if vm_class.former_vcpus:
            size += f" (formerly {', '.join(map(str, vm_class.former_vcpus))})"
        default = ", the default" if vm_class.default else ""
        lines.append(f"class {vm_class.name}: {size}, {vm_class.cpu_policy}{default}")
    lines += [
        f"host {shape}: {number_of(cell_slots(vm_class, shape), 'slot')} of class "
        f"{vm_class.name} per NUMA node, "
        f"{number_of(shape_slots(vm_class, shape), 'VM')} per host"
        for shape in policy.host_shapes
        for vm_class in policy.pinned_classes
    ]
    return "\n".join(lines) + "\n"
