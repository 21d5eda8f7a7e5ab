# SPDX-License-Identifier: Apache-2.0
"""Carry out a plan of migrations: one move at a time, and stop in case of doubt."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote

from nova_perfvm.changes.migrations import bugs
from nova_perfvm.changes.migrations.execution import (
    Execution,
    MoveProgress,
    next_action,
)
from nova_perfvm.changes.migrations.model import Move, allows
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.dry_run import process
from nova_perfvm.cloud.errors import (
    CloudError,
    ConflictError,
    NotThereError,
    openstack_errors,
)
from nova_perfvm.cloud.refresh import refresh
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.verdicts import SchedulerSettings
from nova_perfvm.diagnose.words import in_words
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.dry_run import Question
from nova_perfvm.facts.snapshot import ComputeHost, Migration, Server, Snapshot
from nova_perfvm.findings import Level
from nova_perfvm.policy import Policy

# Pauses between two polls of a migration, which takes from seconds to an hour.
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0
# So many polls of a migration may fail in a row.
_MOST_FAILED: Final = 12
# Nova cleans up after a migration within this time, for example deletes the allocation
# on the source.
_SETTLE_S: Final = 60
# nova-compute updates the usage of its host once a minute by default
# ([DEFAULT]update_resources_interval).  Before the update it may still count a server
# that left by a cold migration.
_REPORT_S: Final = 130
# Minutes to wait for a move; Nova continues the move after that.
PATIENCE_MIN: Final = 60


class StoppedError(PerfVMError):
    """A move failed or became impossible; no further move is started."""


@dataclass(frozen=True)
class Watcher:
    """Callbacks that follow an execution and may end it.

    :ivar keep: saves the execution after each step
    :ivar tell: receives a sentence about each step
    :ivar show: receives the current move, the number of moves done, and the number of
        all moves
    :ivar stopping: returns True when no further move may be started
    """

    keep: Callable[[Execution], None] = lambda _execution: None
    tell: Callable[[str], None] = lambda _text: None
    show: Callable[[str, int, int], None] = lambda _what, _done, _total: None
    stopping: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class ExecutionOutcome:
    """The end of an execution.

    :ivar why: the reason why moves remain; empty if none remain
    :ivar interrupted: whether the operator stopped the execution
    """

    execution: Execution
    why: str = ""
    interrupted: bool = False


@dataclass
class MigrationRun:
    """Makes the remaining moves; reads the cloud again before each move.

    A move is started if the server and both hosts are as planned and the rules still
    allow the move; nova-scheduler checks it as well.  A move is done when the server is
    on its target with its former status, and the audit has no new finding.

    :ivar snapshot: the cloud as last read; at first, read just now
    :ivar execution: the progress so far; moves after a failed move are not started
    :ivar settings: those of nova-scheduler; None for the settings that the policy needs
    :ivar nova_conf: path of nova-scheduler's configuration: before each move a dry run
        of Nova's scheduler must accept the target; None for no dry run
    """

    api: API
    policy: Policy
    snapshot: Snapshot
    execution: Execution
    settings: SchedulerSettings | None = None
    nova_conf: str | None = None
    watcher: Watcher = field(default_factory=Watcher)

    def carry_out(self) -> ExecutionOutcome:
        """Make the remaining moves, until a move fails or the watcher says stop."""
        for number, progress in enumerate(self.execution.moves):
            if progress.state == "done":
                continue
            if self.watcher.stopping():
                return ExecutionOutcome(self.execution, "interrupted", interrupted=True)
            try:
                self._make(number)
            except PerfVMError as exc:
                now = self.execution.moves[number]
                self._keep(number, replace(now, note=str(exc)))
                why = f"{describe(progress.move)}: {exc}"
                return ExecutionOutcome(self.execution, why)
        return ExecutionOutcome(self.execution)

    def _make(self, number: int) -> None:
        """Make one move.

        :raises StoppedError: when the move cannot be started, or did not end as planned
        :raises CloudError: when a request failed
        """
        move = self.execution.moves[number].move
        found: set[tuple[str, str]] | None = None
        asked_now = False
        waits = self._waits(number)
        while True:
            server, migrations = self._look(move)
            progress = self.execution.moves[number]
            action = next_action(progress, server, migrations, asked_now=asked_now)
            if action.kind == "start":
                assert server is not None
                found = self._checked(number)
                self._start(number, server, migrations)
                asked_now = True
            elif action.kind == "confirm":
                self._confirm(move)
            elif action.kind == "done":
                self._check_after(move, found)
                if move.how == "cold":
                    # Until nova-compute's next report the source counts the server, and
                    # would refuse the VM for which this move makes room.
                    self._wait_for_report(move)
                self._keep(number, replace(progress, state="done", note=""))
                self.watcher.tell(f"{move.name} ({move.server}) is on {move.target}")
                return
            elif action.kind == "stop":
                if progress.state != "asked":
                    raise StoppedError(action.why)
                # The move is pending again, so that a later run checks all its
                # conditions anew.
                fresh = replace(progress, state="pending", status="", after="")
                self._keep(number, fresh)
                raise StoppedError(
                    f"{action.why}: openstack server event list {move.server} and "
                    "event show have Nova's reason"
                )
            next(waits)

    def _wait_for_report(self, move: Move) -> None:
        """Wait until nova-compute on the source stops counting the moved server."""
        deadline = time.monotonic() + _REPORT_S
        while self._overcounted(move) and time.monotonic() < deadline:
            self.watcher.show(f"next report of {move.source}", 0, 1)
            time.sleep(_LONGEST_PAUSE_S)

    @openstack_errors()
    def _overcounted(self, move: Move) -> bool:
        self._refresh(move)
        host = next((h for h in self.snapshot.hosts if h.host == move.source), None)
        if host is None:
            return False
        path = f"/os-hypervisors/{host.provider}"
        shown = self.api.nova("GET", path, key="hypervisor")
        servers = self.snapshot.servers_by_host.get(move.source, ())
        vcpus = sum(server.vcpus for server in servers)
        return bool(shown["running_vms"] > len(servers) or shown["vcpus_used"] > vcpus)

    # Reading the cloud

    @openstack_errors()
    def _look(self, move: Move) -> tuple[Server | None, list[Migration]]:
        """Return the server of a move, and its migrations, the newest first."""
        for left in reversed(range(_MOST_FAILED)):
            try:
                # Migrations first: the server, read later, shows how they ended.
                migrations = answers.migrations(self.api, instance_uuid=move.server)
                path = f"/servers/{quote(move.server)}"
                server = answers.server(self.api.nova("GET", path, key="server"))
            except NotThereError:
                return None, []
            except CloudError as exc:
                if not left or 0 < exc.status < 500:
                    raise
                time.sleep(_LONGEST_PAUSE_S)
            else:
                return server, migrations
        raise AssertionError

    def _checked(self, number: int) -> set[tuple[str, str]]:
        """Check both hosts and the rules; return the audit's findings before the move.

        :raises StoppedError: when the move is no longer possible
        """
        move = self.execution.moves[number].move
        self._refresh(move)
        target = next((h for h in self.snapshot.hosts if h.host == move.target), None)
        if target is None:
            raise StoppedError(f"host {move.target} is no longer in the cloud")
        seen = self.snapshot.server_by_id.get(move.server)
        if seen is None or (seen.host or "") != move.source:
            raise StoppedError("somebody else is moving the server")
        met = bugs.of_moves(self.snapshot).get(move.server, ())
        if why := bugs.failing(met, move.how):
            raise StoppedError(why)
        verdict = allows(
            self.policy,
            self.snapshot,
            seen,
            move.target,
            settings=self.settings,
            any_zone=self.execution.any_zone,
        )
        if not verdict.accepted:
            said = in_words(verdict.reasons)
            raise StoppedError(f"{move.target} no longer takes it: {said}")
        self._ask_nova(move, target)
        return self._findings()

    def _ask_nova(self, move: Move, target: ComputeHost) -> None:
        """Run Nova's scheduler dry on a move that our model of it allows.

        :raises StoppedError: when Nova's scheduler refuses the move
        """
        if self.nova_conf is None:
            return
        answer = process.ask(self.nova_conf, Question(server=move.server, every=True))
        refusing = answer.offered.get(target.provider, ("Placement",))
        if answer.refused or refusing:
            why = answer.refused or ", ".join(refusing)
            raise StoppedError(
                f"Nova refuses the server on {move.target} ({why}), which the "
                "plan did not foresee. This is a fault of nova_perfvm: please report "
                f"what openstack perfvm explain --server {move.server} "
                f"--host {shlex.quote(move.target)} "
                f"--from-nova-db {shlex.quote(str(self.nova_conf))} --long prints"
            )

    def _check_after(self, move: Move, before: set[tuple[str, str]] | None) -> None:
        """Wait until the audit has no findings beyond those from before the move.

        :param before: findings before the move; None if another run started the move
        :raises StoppedError: when new findings remain
        """
        deadline = time.monotonic() + _SETTLE_S
        while True:
            self._refresh(move)
            new = self._findings()
            if before is None:
                # The former findings are unknown: only findings about the server itself
                # count.
                new = {found for found in new if move.server in found[1]}
            else:
                new -= before
            if not new:
                return
            if time.monotonic() > deadline:
                raise StoppedError(
                    "the server was moved, and now the audit finds "
                    + "; ".join(sorted(f"{code} {subject}" for code, subject in new))
                    + ": see openstack perfvm audit"
                )
            time.sleep(_FIRST_PAUSE_S)

    def _findings(self) -> set[tuple[str, str]]:
        report = audit.run(audit.Subject(self.policy, self.snapshot))
        return {
            (finding.code, finding.subject)
            for finding in report.findings
            if finding.level > Level.UNKNOWN
        }

    @openstack_errors()
    def _refresh(self, move: Move) -> None:
        # The source of a shelved server is empty.
        hosts = {move.source, move.target} - {""}
        self.snapshot = refresh(self.api, self.snapshot, hosts)

    # Requests to Nova

    def _start(self, number: int, server: Server, migrations: list[Migration]) -> None:
        """Ask Nova to start a move; nova-scheduler checks the target."""
        progress = self.execution.moves[number]
        move = progress.move
        after = migrations[0].id if migrations else ""
        asked = replace(
            progress, state="asked", status=server.status, after=after, note=""
        )
        # Saved before the request: the migrations known before it tell our migration
        # from those of others.
        self._keep(number, asked)
        # The plan was shown before the first move began.
        self.watcher.tell(f"{number + 1} of {len(self.execution.moves)}: {move.name}")
        body: dict[str, Any] = {"migrate": {"host": move.target}}
        if move.live:
            # This microversion has no force (removed in 2.68): Nova asks its filters
            # and Placement.
            body = {"os-migrateLive": {"host": move.target, "block_migration": "auto"}}
        try:
            self._act(move, body)
        except CloudError as exc:
            if 400 <= exc.status < 500:
                # A 4xx answer means that nothing was begun; after any other error Nova
                # may still move the server.
                self._keep(number, progress)
            raise

    def _confirm(self, move: Move) -> None:
        # Nova may have confirmed already, see [DEFAULT]resize_confirm_window.
        with contextlib.suppress(ConflictError):
            self._act(move, {"confirmResize": None})

    def _act(self, move: Move, body: dict[str, Any]) -> None:
        self.api.nova("POST", f"/servers/{quote(move.server)}/action", body)

    def _keep(self, number: int, progress: MoveProgress) -> None:
        self.execution = self.execution.updated(number, progress)
        self.watcher.keep(self.execution)

    # Waiting

    def _waits(self, number: int) -> Iterator[None]:
        """Yield after growing pauses.

        :raises StoppedError: when the move has taken PATIENCE_MIN minutes
        """
        move = self.execution.moves[number].move
        deadline = time.monotonic() + 60 * PATIENCE_MIN
        pause_s = _FIRST_PAUSE_S
        while True:
            if time.monotonic() > deadline:
                raise StoppedError(
                    f"Nova has not finished after {PATIENCE_MIN} minutes and "
                    "continues: see openstack server migration list"
                )
            self._show(number, move)
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
            yield

    def _show(self, number: int, move: Move) -> None:
        count = len(self.execution.moves)
        what = f"{describe(move)}, {number + 1} of {count}"
        self.watcher.show(what, len(self.execution.done), count)


def describe(move: Move) -> str:
    """Describe a move for operators."""
    how = "live-migrate" if move.live else "migrate"
    return f"{how} {move.name} ({move.server}) from {move.source} to {move.target}"
