# SPDX-License-Identifier: Apache-2.0
"""Known bugs of Nova that the migrations of a plan may trigger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.known_bugs import CloudFacts, Hit, KnownBug, all_bugs, hits
from nova_perfvm.printable import some_of

_MOST_NAMED = 5
BugHits = tuple[tuple[KnownBug, Hit], ...]


def of_moves(snapshot: Snapshot) -> dict[str, BugHits]:
    """Return the bugs that hit migrations of each server, by the server's ID."""
    found: dict[str, BugHits] = {}
    for bug, hit in hits(CloudFacts(snapshot)):
        if bug.moves and hit.server is not None:
            found[hit.server.id] = (*found.get(hit.server.id, ()), (bug, hit))
    return found


def failing(found: BugHits, how: str) -> str:
    """Return why a migration of a server certainly fails; empty if it may succeed.

    :param found: the bugs that hit migrations of the server
    :param how: live or cold
    """
    for bug, hit in found:
        if bug.fails and hit.certain and how in bug.moves:
            remedy = bug.remedy_for(hit)
            return f"{bug.name}: {bug.title} ({hit.why}): {remedy}"
    return ""


def notes(snapshot: Snapshot, moves: Sequence[Move]) -> Iterator[str]:
    """Yield the bugs that the migrations of a plan may meet, with remedies."""
    found = of_moves(snapshot)
    for bug in all_bugs():
        names = [
            f"{move.name} ({move.server})"
            for move in moves
            if move.how in bug.moves
            and any(met is bug for met, _ in found.get(move.server, ()))
        ]
        if names:
            who = some_of(list(dict.fromkeys(names)), _MOST_NAMED)
            yield f"{bug.name} may hit {who}: {bug.title}: {bug.remedy}"
