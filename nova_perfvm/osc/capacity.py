# SPDX-License-Identifier: Apache-2.0
"""``perfvm capacity show``."""

from __future__ import annotations

import argparse
from typing import Final

from cliff.lister import Lister

from nova_perfvm.diagnose import capacity
from nova_perfvm.diagnose.capacity import Slots
from nova_perfvm.diagnose.verdicts import SchedulerSettings
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.judging import LookingCommand
from nova_perfvm.policy import Policy

_COLUMNS: Final = ("Class", "Total", "Used", "Free", "Unfit")


def by_argument(default: str) -> opt.Argument:
    return opt.option(
        "--by",
        "a row for each host, each aggregate, or the whole cloud (default: "
        "%(default)s)",
        choices=["host", "aggregate", "cloud"],
        default=default,
    )


def counted(
    by: str, policy: Policy, snapshot: Snapshot, settings: SchedulerSettings
) -> tuple[Slots, ...]:
    """Return the slots of a cloud by host, by aggregate or as one sum.

    :param by: the value of ``--by``
    """
    found = capacity.host_capacity(policy, snapshot, settings)
    if by == "aggregate":
        return capacity.aggregate_capacity(snapshot, found)
    return capacity.cloud_capacity(found) if by == "cloud" else found


class ShowCapacity(LookingCommand, Lister):
    """Count the slots of pinned classes: total, used, free and unfit.

    Free slots are those that Placement and the rules would give now to VMs of the
    class's smallest flavor.  Unfit slots are neither used nor free.
    """

    arguments = (by_argument("host"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        policy, settings, snapshot = self.observed(parsed_args)
        found = counted(parsed_args.by, policy, snapshot, settings)
        self.tell(*capacity.notes(policy, snapshot))
        rows = [(s.name, s.class_name, s.total, s.used, s.free, s.unfit) for s in found]
        return (parsed_args.by.capitalize(), *_COLUMNS), rows
