# SPDX-License-Identifier: Apache-2.0
"""``plan what-if``: capacity before and after supposed changes."""

from __future__ import annotations

import argparse
import itertools
from typing import Final

from nova_perfvm.changes.what_if.new_hosts import NewHosts
from nova_perfvm.changes.what_if.suppose import Supposed, suppose
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.capacity import by_argument, counted
from nova_perfvm.osc.forecasting import ForecastingCommand
from nova_perfvm.osc.judging import LookingLister

_COLUMNS: Final = ("Class", "Slots", "Before", "After", "Difference", "Reason")
_MEASURES: Final = ("total", "used", "free", "unfit")


def _flip(text: str) -> str:
    host = text.removesuffix("=elastic")
    if host in {"", text}:
        raise argparse.ArgumentTypeError(f"{text!r}: expected HOST=elastic")
    return host


class WhatIf(ForecastingCommand, LookingLister):
    """Compare the slots of a cloud before and after supposed changes.

    --policy names the new policy; PERFVM_POLICY names the policy in use. The rules
    place the servers of a removed host on the other hosts. Nothing is changed. Exits
    with 1 if a server of a removed host would find no place, or if the new policy
    would not allow a server as it is; else with 0.
    """

    arguments = (
        opt.repeated(
            "--flip HOST=elastic",
            "enroll this host together with its servers",
            type=_flip,
        ),
        opt.repeated(
            "--add NxSHAPE[=MODE]",
            "add N empty hosts of a shape: 10x2x24 (default mode: elastic where "
            "the policy has units, else dedicated)",
        ),
        opt.option(
            "--memory-gb N",
            "with --add: memory of each host in GiB",
            type=opt.count,
            default=0,
        ),
        opt.repeated(
            "--remove HOST", "remove this host; its servers are placed on other hosts"
        ),
        opt.MAX_RATIO,
        by_argument("cloud"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        old = self.load_policy(None, "policy in use")
        new = None
        if parsed_args.policy is not None:
            new = self.load_policy(parsed_args.policy, "new policy")
        changes = Supposed(
            policy=new,
            flips=parsed_args.flip,
            adds=[NewHosts.parse(text) for text in parsed_args.add],
            memory_gb=parsed_args.memory_gb,
            removes=parsed_args.remove,
            max_ratio=parsed_args.max_ratio,
        )
        if not (new or changes.flips or changes.adds or changes.removes):
            raise PerfVMError("nothing to suppose: --flip, --add, --remove or --policy")
        if bool(changes.adds) != bool(changes.memory_gb):
            raise PerfVMError("--add and --memory-gb go together")
        settings = self.settings(parsed_args, old)
        afterwards = self.settings(parsed_args, new or old)
        snapshot = self.snapshot(parsed_args, old)
        found = suppose(old, snapshot, changes, afterwards)
        estimates = self.estimates(parsed_args, found.policy)
        self.tell(*found.in_words(estimates))
        self.exit_status = int(bool(found.staying or found.left_behind))
        by = parsed_args.by
        sides = [
            {(slots.name, slots.class_name): slots for slots in side}
            for side in (
                counted(by, old, snapshot, settings),
                counted(by, found.policy, found.snapshot, afterwards),
            )
        ]
        rows = []
        for key in dict.fromkeys(itertools.chain(*sides)):
            for measure in _MEASURES:
                was, will = (getattr(side.get(key), measure, 0) for side in sides)
                why = (
                    sides[1][key].why if measure == "unfit" and key in sides[1] else ""
                )
                rows.append((*key, measure, was, will, will - was, why))
        return (by.capitalize(), *_COLUMNS), rows
