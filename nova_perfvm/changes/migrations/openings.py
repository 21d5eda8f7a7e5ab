# SPDX-License-Identifier: Apache-2.0
"""Which servers have to leave a host so that it takes more VMs, the cheapest first.

Servers that are alike form a group, and the question is how many of each group leave.
Few combinations are all tried, in the order of their cost.  Of many, only the smallest
sets are tried that are found by shrinking one group after the other.
"""

from __future__ import annotations

import heapq
import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass

from nova_perfvm.changes.migrations.arrangement import Arrangement, PlannedHost
from nova_perfvm.changes.migrations.model import Weight
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.facts.snapshot import Server

# Up to so many combinations are all tried.
_MOST_SETS = 256

# How many servers of each group leave.
_Counts = tuple[int, ...]


@dataclass(frozen=True)
class Opening:
    """What one host offers when some of its servers leave.

    :ivar servers: IDs of those that leave
    :ivar gain: how many more VMs it takes then
    :ivar cost: of their migrations, wherever they go
    """

    host: str
    servers: tuple[str, ...]
    gain: int
    cost: int


def openings(
    now: Arrangement,
    kind: ServerKind,
    weight: Weight,
    hosts: Collection[str],
    *,
    wanted: int = 1,
    limit: int = 1,
    staying: frozenset[str] = frozenset(),
) -> Iterator[Opening]:
    """Yield openings of hosts, the cheapest per VM first.

    :param wanted: how many VMs are wanted; more are worth nothing
    :param limit: how many VMs of the kind are counted on a host, and how many more
    :param staying: IDs of servers that are not moved
    """
    number = itertools.count()
    # (price per VM, tie-break, entry): a host has the least price that it may have.
    heap: list[tuple[float, int, str | Opening]] = []
    for name in sorted(hosts):
        costs = [weight(now.kind(s.id).cost_mb) for s in now.movable(name)]
        if costs and (kind.allowed is None or name in kind.allowed):
            heap.append((min(costs) / wanted, next(number), name))
    heapq.heapify(heap)
    while heap:
        _, _, found = heapq.heappop(heap)
        if isinstance(found, Opening):
            yield found
            continue
        # A host is examined when nothing cheaper is left.
        for opening in _openings_of(now, found, kind, weight, limit, staying):
            price = opening.cost / min(opening.gain, wanted)
            heapq.heappush(heap, (price, next(number), opening))


def _openings_of(
    now: Arrangement,
    name: str,
    kind: ServerKind,
    weight: Weight,
    limit: int,
    staying: frozenset[str],
) -> list[Opening]:
    """Return the openings of one host, in which no server leaves needlessly."""
    host = now.hosts[name]
    here = staying.intersection(server.id for server in host.view.servers)
    key = kind, weight, limit, here
    if key not in host.openings:
        host.openings[key] = _find_openings(now, name, kind, weight, limit, here)
    found: list[Opening] = host.openings[key]
    return found


def _find_openings(
    now: Arrangement,
    name: str,
    kind: ServerKind,
    weight: Weight,
    limit: int,
    staying: frozenset[str],
) -> list[Opening]:
    host = now.hosts[name]
    groups = [
        [server for server in group if server.id not in staying]
        for group in groups_of(now, name)
    ]
    costs = [weight(now.kind(g[0].id).cost_mb) if g else 0 for g in groups]
    room = host.room(kind, limit)
    gains: dict[_Counts, int] = {}

    def gain(counts: _Counts) -> int:
        if counts not in gains:
            view = host.view.without(_leaving(groups, counts))
            after = PlannedHost(now.planning, view).room(kind, room + limit)
            gains[counts] = after - room
        return gains[counts]

    def cost(counts: _Counts) -> int:
        return sum(n * c for n, c in zip(counts, costs, strict=True))

    everybody = tuple(map(len, groups))
    if gain(everybody) <= 0:
        return []
    if math.prod(count + 1 for count in everybody) <= _MOST_SETS:
        chosen = _all_minimal(everybody, cost, gain)
    else:
        chosen = _some_minimal(everybody, costs, gain)
    return [
        Opening(
            name,
            tuple(server.id for server in _leaving(groups, counts)),
            gain(counts),
            cost(counts),
        )
        for counts in chosen
    ]


def groups_of(now: Arrangement, name: str) -> Sequence[Sequence[Server]]:
    """Return the servers of a host that may leave, in groups that are alike."""
    found: dict[Hashable, list[Server]] = {}
    for server in now.movable(name):
        cells = tuple((c.host_node, len(c.cpu_pinning)) for c in server.cells or ())
        found.setdefault((now.kind(server.id), cells), []).append(server)
    return list(found.values())


def _leaving(groups: Sequence[Sequence[Server]], counts: _Counts) -> list[Server]:
    return [s for group, n in zip(groups, counts, strict=True) for s in group[:n]]


def _all_minimal(
    everybody: _Counts, cost: Callable[[_Counts], int], gain: Callable[[_Counts], int]
) -> list[_Counts]:
    """Return, for each possible gain, the sets in which each server is needed."""
    kept: list[_Counts] = []
    ranges = [range(count + 1) for count in everybody]
    for counts in sorted(itertools.product(*ranges), key=cost):
        # A set that gains no more than a part of it does not need all its servers.
        parts = [part for part in kept if all(map(int.__le__, part, counts))]
        best = max(map(gain, parts), default=0)
        if best < gain(everybody) and gain(counts) > best:
            kept.append(counts)
    return kept


def _some_minimal(
    everybody: _Counts, costs: list[int], gain: Callable[[_Counts], int]
) -> list[_Counts]:
    """Return, for each possible gain, one or two sets that need each server."""
    found: dict[_Counts, None] = {}
    order = sorted(range(len(everybody)), key=costs.__getitem__)
    for wanted in range(1, gain(everybody) + 1):
        for indexes in (order[::-1], order):
            counts = everybody
            for index in indexes:
                # The fewest of a group that have to leave, by bisection.
                trials = [
                    (*counts[:index], few, *counts[index + 1 :])
                    for few in range(counts[index] + 1)
                ]
                counts = trials[bisect_left(trials, wanted, key=gain)]
            found[counts] = None
    return list(found)
