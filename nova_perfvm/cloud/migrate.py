# SPDX-License-Identifier: Apache-2.0
"""Carry a plan of migrations out: one move after the other, and stop when in doubt."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from nova_perfvm.changes.migrations.execution import (
    Execution,
    MoveProgress,
    NextAction,
    next_action,
)
from nova_perfvm.changes.migrations.model import Move, allows
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import (
    CloudError,
    ConflictError,
    NotThereError,
    openstack_errors,
)
from nova_perfvm.cloud.refresh import refresh
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.explain import SchedulerSettings, words
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import Migration, Server, Snapshot
from nova_perfvm.findings import Level
from nova_perfvm.policy import Policy
from nova_perfvm.printable import one_line

# From the first look at a migration to the last: it may take a minute or an hour.
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 5.0
# While a migration runs, so many looks in a row may fail.
_MOST_FAILED: Final = 12
# What Nova does when a migration is over, it does within this: the source's
# allocation goes, for one.
_SETTLE_S: Final = 60
# A compute counts anew what its servers have each minute by default
# ([DEFAULT]update_resources_interval).  Until then it may count one that is deleted, as
# a rule one that had come by a cold migration, or that has left by one.
_REPORT_S: Final = 130
PATIENCE_MIN: Final = 60


class StoppedError(PerfVMError):
    """A move that is not as it was planned: nothing further is started."""


@dataclass(frozen=True)
class Watcher:
    """Who is told of the progress, and may end it.

    :ivar keep: called with the execution after each step, to be written down
    :ivar tell: called with each thing that is done, in words
    :ivar show: called with what is under way, how much of it is done, and of how much
    :ivar stopping: returns whether to start no further move
    """

    keep: Callable[[Execution], None] = lambda _execution: None
    tell: Callable[[str], None] = lambda _text: None
    show: Callable[[str, int, int], None] = lambda _what, _done, _total: None
    stopping: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class ExecutionOutcome:
    """How an execution ended.

    :ivar why: why moves remain, empty if none does
    :ivar interrupted: whether somebody wanted it to end there
    """

    execution: Execution
    why: str = ""
    interrupted: bool = False


def execute(
    api: API,
    policy: Policy,
    snapshot: Snapshot,
    execution: Execution,
    *,
    settings: SchedulerSettings | None = None,
    watcher: Watcher | None = None,
    patience_min: float = PATIENCE_MIN,
) -> ExecutionOutcome:
    """Make the moves that remain, each after a look at what is there now.

    A move is made if the server and both hosts are as the plan has them, and the
    rules allow it still; nova-scheduler judges it, too.  It counts as done when the
    server is on its target in the status that it had, and the audit finds nothing
    that it had not found before.

    :param snapshot: of the cloud, taken just now
    :param settings: those of nova-scheduler; None for what the policy needs
    :param patience_min: how long to wait for one move, in minutes; Nova goes on
        with it after that
    :returns: how far it came; what it could not make, it has not started
    """
    run = _Run(
        api,
        policy,
        settings,
        snapshot,
        execution,
        watcher or Watcher(),
        patience_min * 60,
    )
    return run.outcome()


@dataclass
class _Run:
    """An execution, and the cloud as it was seen last."""

    api: API
    policy: Policy
    settings: SchedulerSettings | None
    snapshot: Snapshot
    execution: Execution
    watcher: Watcher
    patience_s: float

    def outcome(self) -> ExecutionOutcome:
        """Make the moves that remain; see :func:`execute`."""
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

        :raises StoppedError: when it cannot be made, or ended otherwise
        :raises CloudError: when a request failed
        """
        move = self.execution.moves[number].move
        found: set[tuple[str, str]] | None = None
        asked_now = asked_again = False
        waits = self._waits(number)
        while True:
            server, migrations = self._look(move)
            progress = self.execution.moves[number]
            action = next_action(progress, server, migrations, asked_now=asked_now)
            if action.kind == "start":
                assert server is not None
                found = self._checked(move)
                self._start(number, server, migrations)
                asked_now = True
            elif action.kind == "confirm":
                self._confirm(move)
            elif action.kind == "done":
                self._check_after(move, found)
                if not move.live:
                    # Its source counts the server until then, and whoever it made
                    # room for would be refused there.
                    self._counted_anew(move, move.source)
                self._keep(number, replace(progress, state="done", note=""))
                self.watcher.tell(f"{move.name} ({move.server}) is on {move.target}")
                return
            elif action.kind == "stop":
                why = self._ended(number, action, asked_now=asked_now)
                again = asked_now and not asked_again
                if not (again and self._counted_anew(move, move.target)):
                    raise StoppedError(why)
                asked_now, asked_again = False, True
            next(waits)

    def _ended(self, number: int, action: NextAction, *, asked_now: bool) -> str:
        """Write down that it is over, and return why."""
        progress = self.execution.moves[number]
        if progress.state != "asked":
            return action.why
        # Whoever goes on looks at everything anew.
        self._keep(number, replace(progress, state="pending", status="", after=""))
        detail = self._fault(progress.move) if asked_now else ""
        return f"{action.why}: {detail}" if detail else action.why

    def _counted_anew(self, move: Move, name: str) -> bool:
        """Wait until a host's compute counts what its servers have.

        :param name: of the source or the target of the move
        :returns: whether it counted more, so that nova-scheduler saw it fuller than it
            is, and does not any more
        """
        if not self._overcounted(move, name):
            return False
        self.watcher.tell(
            f"nova-compute on {name} counts a server that has left it: waiting until "
            "it counts anew"
        )
        deadline = time.monotonic() + _REPORT_S
        while self._overcounted(move, name):
            if time.monotonic() > deadline:
                return False
            time.sleep(_LONGEST_PAUSE_S)
        return True

    @openstack_errors()
    def _overcounted(self, move: Move, name: str) -> bool:
        self._refresh(move)
        host = next((h for h in self.snapshot.hosts if h.host == name), None)
        if host is None:
            return False
        shown = self.api.nova(
            "GET", f"/os-hypervisors/{host.provider}", key="hypervisor"
        )
        servers = self.snapshot.servers_by_host.get(name, ())
        return int(shown["running_vms"]) > len(servers) or int(
            shown["vcpus_used"]
        ) > sum(server.vcpus for server in servers)

    # What is there

    @openstack_errors()
    def _look(self, move: Move) -> tuple[Server | None, list[Migration]]:
        """Return the server of a move, and its migrations, the newest first."""
        for left in reversed(range(_MOST_FAILED)):
            try:
                # First the migrations: what is over then, the server shows.
                query = urlencode({"instance_uuid": move.server})
                found = self.api.nova_list(
                    f"/os-migrations?{query}", "migrations", "uuid"
                )
                migrations = [answers.migration(one) for one in found]
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

    def _checked(self, move: Move) -> set[tuple[str, str]]:
        """Look at both hosts, and that the rules allow the move; return findings.

        :raises StoppedError: when something is in the way
        """
        self._refresh(move)
        target = next((h for h in self.snapshot.hosts if h.host == move.target), None)
        if target is None:
            raise StoppedError(f"host {move.target} is not to be seen any more")
        seen = self.snapshot.server_by_id.get(move.server)
        if seen is None or seen.host != move.source:
            raise StoppedError("the server is being moved by somebody else")
        verdict = allows(
            self.policy,
            self.snapshot,
            seen,
            move.target,
            settings=self.settings,
            any_zone=self.execution.any_zone,
        )
        if not verdict.accepted:
            said = "; ".join(words(reason) for reason in verdict.reasons)
            raise StoppedError(f"{move.target} takes it no more: {said}")
        return self._findings()

    def _check_after(self, move: Move, before: set[tuple[str, str]] | None) -> None:
        """Wait until the audit finds no more than before the move.

        :param before: None where this run did not see what it was
        :raises StoppedError: when it does not come to that
        """
        deadline = time.monotonic() + _SETTLE_S
        while True:
            self._refresh(move)
            new = self._findings()
            if before is None:
                # Of the server itself nothing may be wrong then.
                new = {found for found in new if move.server in found[1]}
            else:
                new -= before
            if not new:
                return
            if time.monotonic() > deadline:
                raise StoppedError(
                    "it was moved, and now the audit finds "
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

    def _refresh(self, move: Move) -> None:
        hosts = (move.source, move.target)
        self.snapshot = refresh(self.api, self.snapshot, hosts)

    @openstack_errors()
    def _fault(self, move: Move) -> str:
        """Return what Nova says of the last action on a server, empty if nothing."""
        path = f"/servers/{quote(move.server)}/os-instance-actions"
        try:
            newest, *_ = self.api.nova("GET", path, key="instanceActions") or [None]
            if newest is None:
                return ""
            request = f"{path}/{quote(newest['request_id'])}"
            shown = self.api.nova_ussuri("GET", request)["instanceAction"]
        except CloudError:
            return ""
        details = [event.get("details") for event in shown.get("events") or ()]
        return next((one_line(text).rstrip(". ") for text in details if text), "")

    # What is done

    def _start(self, number: int, server: Server, migrations: list[Migration]) -> None:
        """Ask Nova for a move; nova-scheduler is to check the host."""
        progress = self.execution.moves[number]
        move = progress.move
        after = migrations[0].id if migrations else ""
        asked = replace(
            progress, state="asked", status=server.status, after=after, note=""
        )
        # Written down before, as nothing else tells ours from another's.
        self._keep(number, asked)
        # What it is was said before the first began.
        self.watcher.tell(f"{number + 1} of {len(self.execution.moves)}: {move.name}")
        body: dict[str, Any] = {"migrate": {"host": move.target}}
        if move.live:
            # Without force, which microversions before 2.68 have, Nova asks its
            # filters and Placement.
            body = {"os-migrateLive": {"host": move.target, "block_migration": "auto"}}
        try:
            self._act(move, body)
        except CloudError as exc:
            if 400 <= exc.status < 500:
                # After any other error Nova may be at it all the same.
                self._keep(number, progress)
            raise

    def _confirm(self, move: Move) -> None:
        try:
            self._act(move, {"confirmResize": None})
        except ConflictError:
            # Nova confirms by itself where it was told to.
            return

    def _act(self, move: Move, body: dict[str, Any]) -> None:
        self.api.nova("POST", f"/servers/{quote(move.server)}/action", body)

    def _keep(self, number: int, progress: MoveProgress) -> None:
        self.execution = self.execution.updated(number, progress)
        self.watcher.keep(self.execution)

    # Waiting

    def _waits(self, number: int) -> Iterator[None]:
        """Wait a little longer each time, until patience is at an end.

        :raises StoppedError: then
        """
        move = self.execution.moves[number].move
        deadline = time.monotonic() + self.patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            if time.monotonic() > deadline:
                raise StoppedError(
                    f"Nova is not done with it after {self.patience_s / 60:g} minutes "
                    "and goes on: see openstack server migration list"
                )
            self._show(number, move)
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
            yield

    @openstack_errors()
    def _show(self, number: int, move: Move) -> None:
        """Show how much of a server's memory has been copied, as far as Nova tells."""
        count = len(self.execution.moves)
        what = f"{describe(move)}, {number + 1} of {count}"
        path = f"/servers/{quote(move.server)}/migrations"
        found: dict[str, Any] = {}
        if move.live:
            with contextlib.suppress(CloudError):
                found = next(iter(self.api.nova("GET", path, key="migrations")), {})
        total = found.get("memory_total_bytes") or 0
        left = found.get("memory_remaining_bytes") or 0
        if total:
            mib = 1024 * 1024
            self.watcher.show(f"{what}, MiB", (total - left) // mib, total // mib)
        else:
            self.watcher.show(what, len(self.execution.done), count)


def describe(move: Move) -> str:
    """Return a move in words."""
    how = "live-migrate" if move.live else "migrate"
    return f"{how} {move.name} ({move.server}) from {move.source} to {move.target}"
