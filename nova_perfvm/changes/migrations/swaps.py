# SPDX-License-Identifier: Apache-2.0
"""Servers that trade hosts because no third host has room.

One server is shelved: its host takes other servers meanwhile, and the server is
unshelved on another host.  A cold migration cannot replace this: until its confirmation
the server holds its former place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.leaving import HostSearch
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.changes.migrations.openings import Opening, openings
from nova_perfvm.changes.migrations.planning import ServerKind

# The most hosts without room that are tried; the most kinds of leaving servers on each;
# the most partner hosts for each kind; the most hosts for the servers of one trade.
_MOST_OPENINGS, _MOST_KINDS, _MOST_PARTNERS, _MOST_HOSTS = 10, 3, 4, 24
# The most hosts examined as partners.
_MOST_LOOKED_AT: Final = 1000
# The most hosts tried for the server in between, instead of a stop.
_MOST_DETOURS: Final = 3


def traded(
    start: Arrangement,
    kind: ServerKind,
    count: int,
    room: Callable[[Arrangement], int],
    avoided: frozenset[str] = frozenset(),
) -> Arrangement | None:
    """Return an arrangement with more room, by the cheapest trade found.

    No server is stopped if the server can be on another host in between.  Trades in
    which a live migration does not converge are dropped.

    :param kind: the kind of servers that need room; at most `count` are counted on a
        host
    :param room: returns the room in an arrangement
    :param avoided: hosts that no server may come to
    """
    have, targets = room(start), start.planning.targets - avoided
    found = []
    for stopped, others in _trades(start, kind, count, targets):
        tries = iter(range(_MOST_HOSTS))
        search = HostSearch(goal=kind, limit=count, avoided=avoided, tries=tries)
        end = search.leave(start.shelved(stopped), [*others, stopped])
        if end is None or room(end) <= have:
            continue
        moves = end.moves[len(start.moves) + 1 :]
        taking = start.taking(start.kind(stopped), targets)[:_MOST_DETOURS]
        for first in (start, *(start.moved(stopped, host) for host in taking)):
            plain = first.made(moves) if first else None
            if plain is not None and room(plain) > have:
                return plain
        if all(map(start.planning.estimates.moved, moves)):
            found.append(end)
    return min(found, key=_cost_mb, default=None)


def _trades(
    start: Arrangement, kind: ServerKind, count: int, targets: frozenset[str]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield (the server to stop, the servers that move meanwhile).

    Servers leave a host so that it has room for `kind`, and other servers leave a
    second host so that it takes one of the former.
    """
    planning, servers = start.planning, start.planning.snapshot.server_by_id
    if not planning.unshelves_to_hosts:
        return
    partners: dict[ServerKind, list[Opening]] = {}
    for opening in islice(openings(start, kind, targets, limit=count), _MOST_OPENINGS):
        alike = {start.kind(name): name for name in opening.servers}
        for wanted, first in islice(alike.items(), _MOST_KINDS):
            if wanted not in partners:
                full = targets.difference(start.taking(wanted, targets))
                found = openings(start, wanted, sorted(full)[:_MOST_LOOKED_AT])
                partners[wanted] = list(islice(found, _MOST_PARTNERS))
            for partner in partners[wanted]:
                others = partner.servers
                if partner.host == opening.host:
                    continue
                if planning.may_stop(servers[first]):
                    rest = [name for name in opening.servers if name != first]
                    yield first, (*rest, *others)
                if len(others) == 1 and planning.may_stop(servers[others[0]]):
                    yield others[0], opening.servers


def _cost_mb(end: Arrangement) -> int:
    """Return the cost of an arrangement, with disks copied to Glance and back."""
    servers = end.planning.snapshot.server_by_id
    stopped = (servers[move.server] for move in end.moves if move.how == "shelve")
    disks_gb = sum(s.disk_gb for s in stopped if not s.volume_backed)
    return end.cost_mb + 2 * 1024 * disks_gb


def offered(start: Arrangement, end: Arrangement) -> str:
    """Describe a trade that would help if a server may be stopped."""
    stop, *others, back = end.moves[len(start.moves) :]
    return (
        f"a short stop of {_named(stop)} would help: {', '.join(map(_named, others))} "
        f"can move meanwhile, and {stop.name} from {stop.source} to {back.target}: "
        "plan that with --allow-stop"
    )


def stops(end: Arrangement) -> Iterator[str]:
    """Yield a sentence for each stopped server, and where its disk is meanwhile."""
    servers = end.planning.snapshot.server_by_id
    for move in end.moves:
        if move.how == "shelve":
            server = servers[move.server]
            disk = f"{server.disk_gb} GiB at most, is copied to Glance and back"
            if server.volume_backed:
                disk = "a volume, stays"
            until = "is stopped until it is unshelved"
            yield f"{_named(move)} {until}; its root disk, {disk}"


def _named(move: Move) -> str:
    return f"{move.name} ({move.server})"
