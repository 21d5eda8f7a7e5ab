# SPDX-License-Identifier: Apache-2.0
"""``plan free``, ``plan drain`` and ``plan defragment``."""

from __future__ import annotations

import argparse
import collections
import contextlib
import inspect
import re
import shlex
from pathlib import Path
from typing import Any, Final

from nova_perfvm.changes.migrations import bugs, goals
from nova_perfvm.changes.migrations.execution import begin
from nova_perfvm.changes.migrations.forecast import Forecast
from nova_perfvm.changes.migrations.model import MigrationPlan, Move, command
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table
from nova_perfvm.osc.executing import MOVE_COLUMNS, CarryingOut, move_cells, moves_table
from nova_perfvm.osc.forecasting import ForecastingCommand
from nova_perfvm.osc.judging import LookingLister
from nova_perfvm.osc.requested import request_of
from nova_perfvm.printable import number_of

_COSTS: Final = ("Memory MiB", "Pinned", "Minutes", "Downtime ms", "Converges")
_COLUMNS: Final = ("Step", *MOVE_COLUMNS, *_COSTS, "Commands")
# The columns that fit a terminal 100 characters wide.
_SHOWN: Final = ("Step", *MOVE_COLUMNS, *_COSTS[2:])
_PARTIAL, _NONE = 1, 2


class MigrationsLister(CarryingOut, ForecastingCommand, LookingLister):
    """A plan of migrations, one a row, which can be carried out at once.

    A table has the columns that fit a terminal; -c chooses columns, -f json has all.
    Exits with 0 if the plan is complete, 1 if the plan reaches only a part of its goal
    or Nova would give up one of its migrations, 2 without a plan; with --execute 1
    also if migrations remain, or if the cloud has gained less than was planned.
    """

    arguments: opt.Arguments = (
        opt.flag(
            "--execute",
            "make the migrations, one after the other, judging each again before",
        ),
        opt.file(
            "--record",
            "with --execute: write the progress to this file, from which "
            "openstack perfvm plan resume can go on",
        ),
        opt.YES,
        opt.flag(
            "--any-zone",
            "servers may leave their availability zone, except servers that Nova binds "
            "to a zone (Nova 2024.1 and newer shows which)",
        ),
        opt.MAX_RATIO,
        opt.option(
            "--time-limit SECONDS",
            "let the solver search so long (default: %(default)g)",
            type=opt.positive,
            default=10.0,
        ),
        opt.flag("--cold", "migrate running servers cold, too, which stops them"),
        opt.repeated(
            "--exclude HOST|SERVER", "leave this host or server alone; may be repeated"
        ),
    )

    def get_description(self) -> str:
        """Return the command's own description, and the part that all plans share."""
        _, _, shared = (inspect.getdoc(MigrationsLister) or "").partition("\n\n")
        return f"{super().get_description()}\n\n{shared}"

    def planning(
        self, parsed_args: argparse.Namespace, max_moves: int | None = None
    ) -> Planning:
        """Return the policy, snapshot, settings and wishes from which to plan.

        :param max_moves: the most migrations to plan; None for no limit
        :raises PerfVMError: when the policy or the cloud cannot be read, options
            contradict, or --exclude names an unknown host or server
        """
        _check_execution(parsed_args)
        named = self.chosen_policy if parsed_args.execute else self.policy
        policy = named(parsed_args)
        settings = self.settings(parsed_args, policy)
        snapshot = self.snapshot(parsed_args, policy)
        excluded = frozenset(parsed_args.exclude)
        names = {host.host for host in snapshot.hosts}
        names |= {
            name for server in snapshot.servers for name in (server.id, server.name)
        }
        if unknown := sorted(excluded - names):
            raise PerfVMError(
                f"--exclude {', '.join(unknown)}: there is no such host or server"
            )
        wishes = PlanOptions(
            cold=parsed_args.cold,
            excluded=excluded,
            any_zone=parsed_args.any_zone,
            max_moves=max_moves,
            max_ratio=parsed_args.max_ratio,
            time_limit_s=parsed_args.time_limit,
        )
        estimates = self.estimates(parsed_args, policy)
        return Planning(policy, snapshot, settings, wishes, estimates)

    def listed(
        self,
        parsed_args: argparse.Namespace,
        planning: Planning,
        plan: MigrationPlan,
        what: str,
    ) -> Table:
        """Return the table of a plan; the exit status says whether it is complete.

        With --execute, carry out the plan before, and measure its gain in the cloud.

        :param what: the plan's gain, in words
        """
        self.tell(*plan.notes)
        self.tell(*plan.reasons)
        self.tell(*bugs.notes(planning.snapshot, plan.moves))
        self.tell(*planning.estimates.assumptions((*plan.moves, *plan.left_out)))
        summary = plan.summary(what)
        self.tell(summary)
        if not plan.complete:
            self.exit_status = _PARTIAL if plan.gained else _NONE
        if parsed_args.execute and plan.moves:
            execution = begin(
                planning.policy.digest,
                summary,
                plan.moves,
                any_zone=planning.wishes.any_zone,
            )
            path = parsed_args.record
            with textfile.exclusively(path) if path else contextlib.nullcontext():
                execution = self.carry_out(parsed_args, planning, execution)
            if not execution.remaining:
                seen = self.snapshot(parsed_args, planning.policy)
                reached = max(0, plan.measure(seen))
                said = f"seen afterwards: {reached} of {plan.gained} gained: {what}"
                if reached < plan.gained:
                    self.exit_status = _PARTIAL
                    said += ": make a new plan"
                self.tell(said)
            return moves_table(execution)
        if not (self.exit_status or all(map(planning.estimates.moved, plan.moves))):
            self.exit_status = _PARTIAL
        rows = [
            (
                step,
                *move_cells(move),
                *_costs(move, planning.estimates.of(move)),
                command(move),
            )
            for step, move in enumerate(plan.moves, 1)
        ]
        if parsed_args.formatter != "table" or parsed_args.columns:
            return _COLUMNS, rows
        servers = {(move.name, move.server) for move in plan.moves}
        named = collections.Counter(name for name, _ in servers)
        return _SHOWN, [
            tuple(
                move.name if column == "Server" and named[move.name] == 1 else cell
                for column, cell in zip(_COLUMNS, row, strict=True)
                if column in _SHOWN
            )
            for move, row in zip(plan.moves, rows, strict=True)
        ]


def _check_execution(parsed_args: argparse.Namespace) -> None:
    """Check the options that depend on ``--execute``.

    :raises PerfVMError: when they contradict, or the file of --record exists
    """
    path = parsed_args.record
    if not parsed_args.execute:
        if parsed_args.yes or parsed_args.policy_changed or path is not None:
            raise PerfVMError("--record, --yes and --policy-changed are for --execute")
    elif parsed_args.snapshot is not None:
        raise PerfVMError("--execute needs a cloud: leave --snapshot out")
    elif path is not None and Path(path).exists():
        raise PerfVMError(
            f"--record {path}: the file exists already: go on with its plan "
            f"(openstack perfvm plan resume {shlex.quote(str(path))}), or name another "
            "file"
        )


def _costs(move: Move, found: Forecast | None) -> tuple[Any, ...]:
    cells = move.memory_mb, "yes" if move.pinned else "no"
    if found is None:
        return *cells, "", "", ""
    minutes = "" if found.minutes is None else found.minutes
    return *cells, minutes, round(1000 * found.downtime_s), str(found)


class PlanFree(MigrationsLister):
    """Find the cheapest migrations that make room for new servers of a flavor."""

    arguments = (
        opt.option("--flavor FLAVOR", "flavor of the new servers", required=True),
        opt.option(
            "--count N",
            "number of new servers (default: %(default)s)",
            type=opt.count,
            default=1,
        ),
        *opt.REQUEST,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        planning = self.planning(parsed_args)
        request, about = request_of(parsed_args, planning.snapshot)
        self.tell(*about)
        plan = goals.free(planning, request, parsed_args.count)
        gained = number_of(plan.gained, "more VM")
        room = f"room for {gained} of {parsed_args.flavor}"
        return self.listed(parsed_args, planning, plan, room)


def _window(text: str) -> int:
    """Take hours or minutes from the command line; return seconds."""
    found = re.fullmatch(r"0*([1-9][0-9]{0,4})([hm])", text, re.ASCII)
    if not found:
        message = f"{text!r}: expected hours or minutes, such as 2h or 90m"
        raise argparse.ArgumentTypeError(message)
    return int(found[1]) * (3600 if found[2] == "h" else 60)


class PlanDrain(MigrationsLister):
    """Find hosts for all servers of a host, and the order in which they leave."""

    arguments = (
        opt.option("host HOST", "compute host to empty"),
        opt.option(
            "--window TIME",
            "plan only migrations that end within this time by the forecast, such "
            "as 2h or 90m",
            type=_window,
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        host = parsed_args.host
        planning = self.planning(parsed_args)
        plan = goals.drain(planning, host, parsed_args.window)
        wanted = number_of(plan.wanted, "server")
        leaving = f"{plan.gained} of {wanted} leave {host}"
        return self.listed(parsed_args, planning, plan, leaving)


class PlanDefragment(MigrationsLister):
    """Find the migrations after which the most slots are free."""

    arguments = (
        opt.option(
            "--budget N", "plan at most N migrations", type=opt.count, required=True
        ),
        opt.vm_class("the class of the slots (default: the policy's pinned class)"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        planning = self.planning(parsed_args, parsed_args.budget)
        vm_class = planning.policy.pinned_class(parsed_args.class_name)
        plan = goals.defragment(planning, vm_class)
        gained = number_of(plan.gained, "more free slot")
        slots = f"{gained} of class {vm_class.name}"
        return self.listed(parsed_args, planning, plan, slots)
