# SPDX-License-Identifier: Apache-2.0
"""``plan what-if``: capacity before and after changes that nobody has made yet."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any, Final

from nova_perfvm.changes.what_if.new_hosts import NewHosts
from nova_perfvm.changes.what_if.suppose import Supposed, suppose
from nova_perfvm.diagnose.capacity import Slots
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc.base import (
    POLICY_VARIABLE,
    Table,
    argument,
    count,
    file_argument,
    policy_of_environment,
)
from nova_perfvm.osc.capacity import by_argument, counted
from nova_perfvm.osc.judging import NOVA_CONF, LookingLister
from nova_perfvm.policy import Policy

_COLUMNS: Final = ("Class", "Slots", "Before", "After", "Difference")
_MEASURES: Final = ("total", "used", "free", "unfit")
_ELASTIC: Final = "elastic"


def _flip(text: str) -> str:
    host, _, mode = text.rpartition("=")
    if not host or mode != _ELASTIC:
        raise argparse.ArgumentTypeError(f"{text!r}: expected HOST=elastic")
    return host


class WhatIf(LookingLister):
    """Compare the slots of a cloud with those that it would have after changes.

    --policy is the new policy here. Servers of a host that is removed are placed on
    the others by the rules. Nothing is changed. Exits with 0, or 1 if a server would
    fit no host or the new policy would leave one behind.
    """

    arguments = (
        argument(
            "--flip",
            action="append",
            default=[],
            type=_flip,
            metavar="HOST=elastic",
            help="enroll this host, with what is on it",
        ),
        argument(
            "--add",
            action="append",
            default=[],
            metavar="NxSHAPE[=MODE]",
            help="add N empty hosts of a shape: 10x2x24 (default mode: elastic where "
            "the policy has units, else dedicated)",
        ),
        argument(
            "--memory-gb",
            type=count,
            default=0,
            metavar="N",
            help="with --add: memory of each",
        ),
        argument(
            "--remove",
            action="append",
            default=[],
            metavar="HOST",
            help="remove this host; its servers are placed again",
        ),
        file_argument(
            "--policy-in-use",
            help="with --policy, the new one: the policy in use "
            f"(default: {POLICY_VARIABLE} of the environment, else the built-in one)",
        ),
        by_argument("cloud"),
        NOVA_CONF,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Change a snapshot, and count the slots of both."""
        old, new = self._policies(parsed_args)
        changes = Supposed(
            policy=new,
            flips=parsed_args.flip,
            adds=[NewHosts.parse(text) for text in parsed_args.add],
            memory_gb=parsed_args.memory_gb,
            removes=parsed_args.remove,
        )
        if not (new or changes.flips or changes.adds or changes.removes):
            raise PerfVMError("nothing to suppose: --flip, --add, --remove or --policy")
        if bool(changes.adds) != bool(changes.memory_gb):
            raise PerfVMError("--add and --memory-gb go together")
        settings = self.settings(parsed_args, old)
        afterwards = self.settings(parsed_args, new or old)
        snapshot = self.snapshot(parsed_args, old)
        if snapshot.policy_digest not in {None, old.digest}:
            self.warn(
                f"the snapshot was taken with another policy ({snapshot.policy_digest})"
            )
        found = suppose(old, snapshot, changes, afterwards)
        self.remark(found.in_words())
        self.exit_status = int(bool(found.homeless or found.left_behind))
        by = parsed_args.by
        before = counted(by, old, snapshot, settings)
        after = counted(by, found.policy, found.snapshot, afterwards)
        rows = _rows(_by_name(before), _by_name(after))
        return (by.capitalize(), *_COLUMNS), list(rows)

    def _policies(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Policy, Policy | None]:
        """Return the policy in use, and that which is supposed, if one is."""
        old = self.load_policy(parsed_args.policy_in_use, "policy in use")
        if parsed_args.policy is None:
            return old, None
        if parsed_args.policy_in_use is None and policy_of_environment() is None:
            self.remark(
                ["the built-in policy is taken for that in use: else --policy-in-use"]
            )
        return old, self.load_policy(parsed_args.policy, "new policy")


def _by_name(found: Iterable[Slots]) -> dict[tuple[str, str], Slots]:
    return {(slots.name, slots.class_name): slots for slots in found}


def _rows(
    before: dict[tuple[str, str], Slots], after: dict[tuple[str, str], Slots]
) -> Iterator[tuple[Any, ...]]:
    for key in dict.fromkeys((*before, *after)):
        for measure in _MEASURES:
            old, new = (
                getattr(side[key], measure) if key in side else 0
                for side in (before, after)
            )
            yield (*key, measure, old, new, new - old)
