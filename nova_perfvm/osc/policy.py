# SPDX-License-Identifier: Apache-2.0
"""``policy show``, ``policy check`` without a cloud, and ``policy diff``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from cliff.lister import Lister

from nova_perfvm.diagnose.policy_diff import Difference, compare, compare_servers
from nova_perfvm.generate.formats import document
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import (
    PerfVMCommand,
    PolicyCommand,
    policy_name,
    policy_path,
    read_policy,
)
from nova_perfvm.osc.judging import JudgingCommand
from nova_perfvm.osc.snapshot import look
from nova_perfvm.policy import Policy, advice, loader
from nova_perfvm.policy.summary import summary

_FORMATS: Final[dict[str, Callable[[Policy], str]]] = {
    "yaml": document.policy_yaml,
    "json": document.policy_json,
}


class ShowPolicy(PolicyCommand):
    """Print the effective policy, every key written out, and its hash."""

    arguments = (
        opt.formats(_FORMATS, "default: %(default)s, the format of policy files"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        policy = read_policy(policy_name(parsed_args))
        self.write(_FORMATS[parsed_args.format](policy))


class CheckPolicy(JudgingCommand, PolicyCommand):
    """List every mistake of a policy file, or summarize a valid policy.

    Exits with 0 if the policy is valid, else with 2. ``openstack perfvm policy check``
    compares a policy with a cloud and Nova's options.
    """

    judges = "policy"
    arguments = (opt.POLICY_FILE,)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        source = policy_path(parsed_args)
        policy = read_policy(source)
        self.write(summary(policy, loader.title(source)))
        for found in advice(policy):
            self.tell(f"note: {found.code}: {found.observed}")


class DiffPolicy(PerfVMCommand, Lister):
    """List the effects of a change of the policy.

    On flavors, image properties and hosts; with a cloud or a snapshot also the
    servers that the new policy would not allow.
    """

    arguments = (
        opt.option("old OLD", "present policy file"),
        opt.option("new NEW", "new policy file"),
        opt.SNAPSHOT,
    )

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], list[Difference]]:
        old, new = loader.load(parsed_args.old), read_policy(parsed_args.new)
        found = compare(old, new)
        if parsed_args.snapshot is not None or self.has_cloud:
            seen = look(self, parsed_args.snapshot)
            found += compare_servers(old, new, seen)
        return ("Type", "Name", "What", "Old", "New"), found
