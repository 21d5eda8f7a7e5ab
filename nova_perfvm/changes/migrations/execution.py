# SPDX-License-Identifier: Apache-2.0
"""The progress of a plan's moves, and the next action of each.

The next action follows from what Nova shows of the server now, so a run continues where
an earlier run ended or crashed.  One fact must be remembered: that this plan has asked
Nova for the move.  If it has not, and the server is being moved or waits for a
confirmation, somebody else is moving the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.diagnose.moves import kinds
from nova_perfvm.facts.migration_states import REVERTED
from nova_perfvm.facts.snapshot import Migration, Server

State = Literal["pending", "asked", "done"]

_TO_CONFIRM: Final = "VERIFY_RESIZE"
# The status of a resize that only lacks the confirmation.
_MOVED: Final = "finished"
_SUCCEEDED: Final = frozenset({"completed", "confirmed", "done"})
_FAILED: Final = frozenset({"error", "failed", "cancelled", REVERTED})


@dataclass(frozen=True)
class MoveProgress:
    """One move, and its progress.

    :ivar state: ``asked``: Nova was asked to move the server, and the result is not
        known
    :ivar status: the server's status before Nova was asked; empty until then
    :ivar after: ID of the server's newest migration before Nova was asked; empty for
        none
    :ivar note: why the move stopped; empty if it did not
    """

    move: Move
    state: State = "pending"
    status: str = ""
    after: str = ""
    note: str = ""


@dataclass(frozen=True)
class Execution:
    """A plan, and the progress of its moves.

    :ivar policy_digest: digest of the policy that the plan was made with
    :ivar purpose: the purpose of the plan, in words
    :ivar any_zone: whether servers may leave their zone, by the plan's options
    """

    policy_digest: str
    purpose: str
    moves: tuple[MoveProgress, ...]
    any_zone: bool = False

    @property
    def done(self) -> tuple[MoveProgress, ...]:
        return tuple(found for found in self.moves if found.state == "done")

    @property
    def remaining(self) -> tuple[MoveProgress, ...]:
        return tuple(found for found in self.moves if found.state != "done")

    def updated(self, number: int, progress: MoveProgress) -> Execution:
        """Return the execution with the progress of one move replaced.

        :param number: index of the move, from 0
        """
        moves = (*self.moves[:number], progress, *self.moves[number + 1 :])
        return replace(self, moves=moves)


def begin(
    policy_digest: str, purpose: str, moves: Iterable[Move], *, any_zone: bool = False
) -> Execution:
    """Return the execution of a plan before its first move."""
    return Execution(policy_digest, purpose, tuple(map(MoveProgress, moves)), any_zone)


class NextAction(NamedTuple):
    """The next action of a move.

    :ivar kind: ``start``: ask Nova for the move; ``wait``: Nova is at work;
        ``confirm``; ``done``; ``stop``: the move does not go as planned
    :ivar why: for ``stop``, in words
    """

    kind: Literal["start", "wait", "confirm", "done", "stop"]
    why: str = ""


def next_action(
    progress: MoveProgress,
    server: Server | None,
    migrations: Sequence[Migration],
    *,
    asked_now: bool = False,
) -> NextAction:
    """Return the next action of a move from what Nova shows of its server.

    :param server: as it is now; None if it was deleted
    :param migrations: all migrations of the server, finished ones too, newest first
    :param asked_now: whether this run has asked Nova for the move.  If there is no
        migration then, Nova has refused the request; the request was not lost
    """
    if server is None:
        return NextAction("stop", "the server was deleted")
    if not (progress.move.source and progress.move.target):
        # A record of a release that had plan --allow-stop.
        why = f"plans shelve no server now: openstack server unshelve {server.id} if it"
        return NextAction("stop", f"{why} is shelved, then make a new plan")
    if progress.state == "asked":
        return _asked(progress, server, migrations, asked_now=asked_now)
    return _pending(progress.move, server, migrations)


def _pending(move: Move, server: Server, migrations: Sequence[Migration]) -> NextAction:
    """Return the action of a move that Nova was not asked for: start, done or stop."""
    # Nova calls an evacuation "done" before the failed host has cleaned up.
    at_work = any(map(_is_at_work, migrations))
    if server.task is not None or server.status == _TO_CONFIRM or at_work:
        state = server.task or server.status
        why = f"somebody else is moving or changing the server ({state})"
        return NextAction("stop", why)
    if server.host == move.target:
        # Another run has made the move.
        return NextAction("done")
    if server.host != move.source:
        return NextAction("stop", _elsewhere(server))
    if move.how not in kinds(server):
        why = f"the server is {server.status}: Nova does not migrate it {move.how}"
        return NextAction("stop", why)
    return NextAction("start")


def _asked(
    progress: MoveProgress,
    server: Server,
    migrations: Sequence[Migration],
    *,
    asked_now: bool,
) -> NextAction:
    """Return the action of a move that Nova was asked for: any kind of NextAction."""
    move = progress.move
    newest = next(iter(_since(migrations, progress.after)), None)
    # Nova sets the destination of a migration once it is chosen.
    if newest is not None and (newest.source, newest.destination) not in {
        (move.source, move.target),
        (move.source, None),
    }:
        return NextAction(
            "stop",
            f"somebody else moved the server: {newest.kind} from {newest.source} to "
            f"{newest.destination} is {newest.status}",
        )
    to_confirm = server.status == _TO_CONFIRM
    if newest is None or newest.status in _SUCCEEDED:
        # A server in VERIFY_RESIZE: its migration began after the list was read, or
        # nova-compute has confirmed the migration, and changes the status next.
        at_work = to_confirm
    else:
        at_work = _is_at_work(newest) and server.status != "ERROR"
        moved = to_confirm and newest.status == _MOVED and server.host == move.target
        if moved and server.task is None:
            return NextAction("confirm")
    if server.task is not None or at_work:
        return NextAction("wait")
    if server.host == move.source and newest is None and not asked_now:
        # The earlier run ended after it saved the state, before it sent the request.
        return _pending(move, server, migrations)
    return _ended(progress, server, newest)


def _ended(
    progress: MoveProgress, server: Server, newest: Migration | None
) -> NextAction:
    """Return the next action of a move that Nova no longer works on.

    :param newest: the move's migration; None if there is none
    """
    move = progress.move
    ended = f": its migration is {newest.status}" if newest else ""
    if server.host == move.source:
        return NextAction("stop", f"Nova did not move the server{ended}")
    failed = newest is not None and newest.status not in _SUCCEEDED
    if server.host != move.target or failed:
        return NextAction("stop", f"{_elsewhere(server)}{ended}")
    if server.status != progress.status:
        why = f"the server was {progress.status}, and is {server.status} now"
        return NextAction("stop", why)
    return NextAction("done")


def _elsewhere(server: Server) -> str:
    return f"the server is {server.status} on {server.host or 'no host'}"


def _since(migrations: Sequence[Migration], known: str) -> Sequence[Migration]:
    """Return the migrations newer than the ID `known`; all if no migration has it."""
    ids = [migration.id for migration in migrations]
    return migrations[: ids.index(known)] if known in ids else migrations


def _is_at_work(migration: Migration) -> bool:
    return migration.status not in _SUCCEEDED | _FAILED
