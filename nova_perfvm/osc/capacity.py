# SPDX-License-Identifier: Apache-2.0
"""``perfvm capacity show``."""

from __future__ import annotations

import argparse
from typing import Final

from nova_perfvm.diagnose import capacity
from nova_perfvm.osc.base import Table, argument
from nova_perfvm.osc.judging import NOVA_CONF, LookingLister

_COLUMNS: Final = ("Class", "Total", "Used", "Free", "Unfit")


class ShowCapacity(LookingLister):
    """Count the slots of pinned classes: total, used, free and unfit.

    Free is what Placement and the rules would give to VMs of the class's
    smallest flavor now.  Unfit is the rest.  Exits with 0, or 2 for errors.
    """

    arguments = (
        argument(
            "--by",
            choices=["host", "aggregate", "cloud"],
            default="host",
            help="a row for each of these (default: %(default)s)",
        ),
        NOVA_CONF,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Count the slots."""
        policy = self.policy(parsed_args)
        settings = self.settings(parsed_args, policy)
        snapshot = self.snapshot(parsed_args, policy)
        found = capacity.host_capacity(policy, snapshot, settings)
        if parsed_args.by == "aggregate":
            found = capacity.aggregate_capacity(snapshot, found)
        elif parsed_args.by == "cloud":
            found = capacity.cloud_capacity(found)
        rows = [(s.name, s.class_name, s.total, s.used, s.free, s.unfit) for s in found]
        return (parsed_args.by.capitalize(), *_COLUMNS), rows
