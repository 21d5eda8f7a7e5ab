# SPDX-License-Identifier: Apache-2.0
"""``perfvm capacity show``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nova_perfvm.diagnose import capacity
from nova_perfvm.osc.base import file_path
from nova_perfvm.osc.look import LookingCommand

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

_COLUMNS: Final = ("Class", "Total", "Used", "Free", "Unfit")


class ShowCapacity(LookingCommand):
    """Count the slots of pinned classes: total, used, free and unfit.

    Free is what Placement and the rules would give to VMs of the class's
    smallest flavor now.  Unfit is the rest.  Exits with 0, or 2 for errors.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Add what to add up by."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--by",
            choices=["host", "aggregate", "cloud"],
            default="host",
            help="a row for each of these (default: %(default)s)",
        )
        parser.add_argument(
            "--nova-conf",
            type=file_path,
            metavar="FILE",
            help="copy of nova-scheduler's nova.conf (default: it is taken to be set "
            "up as the policy needs it)",
        )
        return parser

    def look(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], Iterable[tuple[Any, ...]], int]:
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
        return (parsed_args.by.capitalize(), *_COLUMNS), rows, 0
