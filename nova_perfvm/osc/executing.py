# SPDX-License-Identifier: Apache-2.0
"""Carry out plans of migrations; ``plan resume``."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import signal
import threading
from collections.abc import Iterator
from typing import Final

from cliff.lister import Lister

from nova_perfvm.changes.migrations import record
from nova_perfvm.changes.migrations.execution import Execution
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.changes.migrations.planning import Planning
from nova_perfvm.cloud import migrate
from nova_perfvm.documents import textfile
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.osc import options as opt
from nova_perfvm.osc.base import Table, ask
from nova_perfvm.osc.judging import ObservingCommand
from nova_perfvm.osc.output import SIGINT_EXIT, ProgressLine
from nova_perfvm.osc.recording import RecordingCommand

MOVE_COLUMNS: Final = ("Server", "From", "To", "Migration")
_REMAIN: Final = 1
_INTERRUPTED: Final = (
    "interrupted: finishing the migration under way, and beginning no other one; "
    "Ctrl-C again leaves the migration to Nova"
)


class CarryingOut(ObservingCommand, RecordingCommand, Lister):
    """A command that makes the migrations of a plan, and lists the state of each."""

    def carry_out(
        self, parsed_args: argparse.Namespace, planning: Planning, execution: Execution
    ) -> Execution:
        """Ask, and make the remaining moves; exit status 1 if some still remain.

        :param planning: the plan's policy, settings and a fresh snapshot of the cloud
        """
        path = parsed_args.record
        for progress in execution.remaining:
            self.tell(migrate.describe(progress.move))
        if not parsed_args.yes and not ask(self.app.stderr, ""):
            self.exit_status = _REMAIN
            self.tell("nothing was changed")
            return execution
        self.record_policy(parsed_args)
        kept = [execution]

        def keep(found: Execution) -> None:
            kept.append(found)
            if path is not None:
                textfile.replace(path, record.dumps(found), private=True)

        keep(execution)
        untold = [_INTERRUPTED]
        with ProgressLine() as progress_line, _interruptible() as interrupted:

            def tell(text: str) -> None:
                progress_line.clear()
                self.tell(text)

            def show(what: str, done: int, total: int) -> None:
                if interrupted.is_set() and untold:
                    tell(untold.pop())
                progress_line(what, done, total)

            try:
                outcome = migrate.MigrationRun(
                    self.cloud,
                    planning.policy,
                    planning.snapshot,
                    execution,
                    settings=planning.settings,
                    nova_conf=parsed_args.from_nova_db,
                    watcher=migrate.Watcher(keep, tell, show, interrupted.is_set),
                ).carry_out()
            except KeyboardInterrupt:
                outcome = migrate.ExecutionOutcome(
                    kept[-1], "left to Nova", interrupted=True
                )
        self._summarize(outcome, path)
        return outcome.execution

    def _summarize(self, outcome: migrate.ExecutionOutcome, path: str | None) -> None:
        """Print the progress; set the exit status if migrations remain."""
        execution = outcome.execution
        done, remaining = len(execution.done), execution.remaining
        said = f"{done} of {len(execution.moves)} migrations are done"
        if not remaining:
            self.tell(said)
            return
        self.exit_status = SIGINT_EXIT if outcome.interrupted else _REMAIN
        remedy = "make a new plan"
        if path is not None:
            record = shlex.quote(str(path))
            remedy = f"openstack perfvm plan resume {record}, or {remedy}"
        self.tell(f"stopped: {outcome.why}")
        self.tell(
            f"{said}, and {len(remaining)} remain: remove the cause, then {remedy}"
        )


class ResumePlan(CarryingOut):
    """Resume a plan of migrations from the file that --record wrote.

    Finished migrations are skipped. Each remaining migration is made only if the
    rules allow it now, as the cloud may have changed. Exits with 1 also if migrations
    remain.
    """

    arguments: opt.Arguments = (
        opt.file("record", "file of --record"),
        opt.NOVA_DB,
        opt.YES,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        policy = self.chosen_policy(parsed_args)
        settings = self.settings(parsed_args, policy)
        path = parsed_args.record
        # Before the lock, whose file is made beside the record: a wrong path fails.
        record.read(path)
        with textfile.exclusively(path):
            execution = record.read(path)
            if execution.policy_digest != policy.digest:
                raise PerfVMError(
                    f"{path}: the plan was made by another policy "
                    f"({execution.policy_digest}): name that with --policy, or make a "
                    "new plan"
                )
            if execution.purpose:
                self.tell(execution.purpose)
            if not execution.remaining:
                self.tell("nothing to do: the plan's migrations are all done")
                return moves_table(execution)
            snapshot = self.snapshot(parsed_args, policy)
            planning = Planning(policy, snapshot, settings)
            execution = self.carry_out(parsed_args, planning, execution)
        if not execution.remaining:
            self.tell("make the same plan again to see what the migrations gained")
        return moves_table(execution)


@contextlib.contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C sets; a second raises KeyboardInterrupt.

    So the first Ctrl-C aborts no request to the cloud.
    """
    wished = threading.Event()

    def interrupted(*_signal: object) -> None:
        # A signal handler that prints could interrupt a print of the main program.
        if wished.is_set():
            raise KeyboardInterrupt
        wished.set()

    if threading.current_thread() is not threading.main_thread():
        # Only the main thread gets signals.
        yield wished
        return
    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield wished
    finally:
        signal.signal(signal.SIGINT, before)


def move_cells(move: Move) -> tuple[str, ...]:
    return f"{move.name} ({move.server})", move.source, move.target, move.how


def moves_table(execution: Execution) -> Table:
    return ("Move", *MOVE_COLUMNS, "State", "Note"), [
        (number, *move_cells(found.move), found.state, found.note)
        for number, found in enumerate(execution.moves, 1)
    ]
