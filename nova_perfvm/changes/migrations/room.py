# SPDX-License-Identifier: Apache-2.0
"""Room for VMs of one kind: how much there is, and how migrations make more."""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from nova_perfvm.changes.migrations.arrangement import MOST_ROOM, Arrangement
from nova_perfvm.changes.migrations.openings import Opening, Weight, openings
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.changes.migrations.sequence import Order, destinations, order
from nova_perfvm.changes.migrations.settling import Settling

# How servers are settled: without a loss of room, or with one; how deep they may
# push others on; and so many openings of which servers alike leave are tried.
_DIRECT: Final = ((True, 0), (False, 0))
_PUSHING: Final = ((True, 1), (True, 2), (False, 1))
_MOST_DIRECT: Final = 8
_MOST_PUSHING: Final = 3
# Clouds of so many hosts are looked through; in others so many openings for which
# servers push others on are tried, and where there is no other way only.
_SMALL: Final = 30
_MOST_PUSHED: Final = 8
# So many openings are tried of those that cost less than the best way found.
_MOST_TRIED: Final = 300


@dataclass(frozen=True)
class Demanded:
    """What room is made for.

    :ivar count: so many VMs are wanted in all
    :ivar weight: what the plan is to have the least of
    """

    kind: ServerKind
    count: int = MOST_ROOM
    weight: Weight = lambda kind: kind.cost_mb

    def room(self, arrangement: Arrangement) -> int:
        """Return how many of the VMs there is room for, no more than wanted."""
        shared = any(host.view.sharing for host in arrangement.hosts.values())
        if shared:
            return len(newcomers(arrangement, self.kind, self.count)[1])
        found = 0
        for host in arrangement.hosts.values():
            found += host.room(self.kind, self.count - found)
            if found >= self.count:
                break
        return found

    def gain(self, before: Arrangement, after: Arrangement) -> int:
        """Return how many more VMs one arrangement has room for than another."""
        return self.room(after) - self.room(before)


def newcomers(
    arrangement: Arrangement, kind: ServerKind, count: int
) -> tuple[Arrangement, tuple[str, ...]]:
    """Return an arrangement with so many VMs more, or as many as fit, and their hosts.

    Each comes to the host that the weigher would choose.
    """
    found = []
    for number in range(count):
        taking = [n for n, h in arrangement.hosts.items() if h.fits(kind)]
        if not taking:
            break
        hosts = arrangement.hosts
        best = max(taking, key=lambda name: (hosts[name].score(kind), name))
        server = arrangement.planning.newcomer(kind, number)
        after = arrangement.joined(server, kind, best)
        if after is None:
            break
        arrangement = after
        found.append(best)
    return arrangement, tuple(found)


def enlarged(start: Arrangement, demanded: Demanded, most_moves: int | None) -> Order:
    """Return the migrations found that give the most room, up to what is wanted.

    Opening after opening, each the cheapest for what it gives.

    :param most_moves: at most so many
    """
    done = Order((), start)
    while demanded.room(done.end) < demanded.count:
        left = None if most_moves is None else most_moves - len(done.steps)
        if left is not None and left <= 0:
            break
        found = _cheapest(done.end, demanded, left)
        if found is None:
            break
        done = done.then(found)
    return _without_detours(start, demanded, done)


def _cheapest(
    start: Arrangement, demanded: Demanded, most_moves: int | None
) -> Order | None:
    """Return the migrations that cost the least for each VM that they make room for."""
    have = demanded.room(start)
    best: tuple[float, Order] | None = None
    thorough = len(start.hosts) <= _SMALL
    for pushing, most in ((_DIRECT, _MOST_DIRECT), (_PUSHING, _MOST_PUSHING)):
        if best is not None and pushing is _PUSHING and not thorough:
            # There is a way, if not the cheapest; this would take minutes.
            break
        tried = _MOST_TRIED if thorough or pushing is _DIRECT else _MOST_PUSHED
        for opening, worth_it in _tried(start, demanded, have, most, most_moves):
            least = opening.cost / min(opening.gain, demanded.count - have)
            if (best is not None and least >= best[0]) or tried == 0:
                break
            if not worth_it:
                continue
            tried -= 1
            for way in _ways(start, demanded, opening, pushing):
                gain = demanded.room(way.end) - have
                if gain <= 0 or (most_moves or len(way.steps)) < len(way.steps):
                    continue
                price = cost(way, demanded.weight) / gain
                if best is None or price < best[0]:
                    best = price, way
                if price <= least:
                    break
    return best[1] if best else None


def _tried(
    start: Arrangement,
    demanded: Demanded,
    have: int,
    most: int,
    most_moves: int | None,
) -> Iterator[tuple[Opening, bool]]:
    """Yield openings, the cheapest first, and whether to try each.

    Of those of which servers leave that are alike the first few are.
    """
    alike: collections.Counter[frozenset[tuple[ServerKind, int]]] = (
        collections.Counter()
    )
    found = openings(
        start,
        demanded.kind,
        demanded.weight,
        tuple(start.hosts),
        wanted=demanded.count - have,
        limit=demanded.count,
    )
    kind = start.planning.kind
    for opening in found:
        kinds = collections.Counter(kind(start.server(s)) for s in opening.servers)
        key = frozenset(kinds.items())
        alike[key] += 1
        few = most_moves is None or len(opening.servers) <= most_moves
        yield opening, few and alike[key] <= most


def cost(found: Order, weight: Weight) -> int:
    """Return what the steps of an order cost by a weight."""
    planning = found.end.planning
    servers = planning.snapshot.server_by_id
    return sum(weight(planning.kind(servers[step.server])) for step in found.steps)


def _ways(
    start: Arrangement,
    demanded: Demanded,
    opening: Opening,
    pushing: tuple[tuple[bool, int], ...],
) -> Iterator[Order]:
    """Yield orders of migrations that let the servers of an opening leave."""
    planning = start.planning
    servers = sorted(
        opening.servers,
        key=lambda name: (-planning.kind(start.server(name)).cost_mb, name),
    )
    floating = tuple((name, opening.host) for name in servers)
    lifted = start.lifted(tuple(servers))
    seen: set[frozenset[tuple[str, str]]] = set()
    for lossless, depth in pushing:
        settling = Settling(
            demanded.weight,
            demanded.kind,
            limit=demanded.count,
            lossless=lossless,
            depth=depth,
            moved=frozenset(servers),
        )
        end = settling.settle(lifted, floating)
        if end is None:
            continue
        goals = destinations(start, end)
        key = frozenset(goals.items())
        found = None if key in seen else order(start, goals)
        seen.add(key)
        if found is not None:
            yield found


def _without_detours(start: Arrangement, demanded: Demanded, found: Order) -> Order:
    """Return the order without what it can do without."""
    room = demanded.room(found.end)
    best = found
    goals = {n: t for n, t in found.goals.items() if start.host_of(n) != t}
    straight = _if_better(start, demanded, goals, best, room)
    if straight is not None:
        best = straight
    for name in found.goals:
        fewer: Mapping[str, str] = {n: t for n, t in best.goals.items() if n != name}
        if len(fewer) < len(best.goals):
            shorter = _if_better(start, demanded, fewer, best, room)
            best = shorter or best
    return best


def _if_better(
    start: Arrangement,
    demanded: Demanded,
    goals: Mapping[str, str],
    best: Order,
    room: int,
) -> Order | None:
    found = order(start, goals)
    if found is None or demanded.room(found.end) < room:
        return None
    weights = [cost(each, demanded.weight) for each in (found, best)]
    return found if weights[0] < weights[1] else None
