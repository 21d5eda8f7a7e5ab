# SPDX-License-Identifier: Apache-2.0
"""Who has to leave a host so that it takes more VMs of a kind, the cheapest first.

Servers that are alike are counted, not named: the question is how many of each
group leave.  Where there are few answers all are looked at, in the order of what
they cost; where there are many, only the smallest sets that are found by leaving
out one group after the other.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass

from nova_perfvm.changes.migrations.arrangement import Arrangement, PlannedHost
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.facts.snapshot import Server

# So many answers are looked at one by one.
_MOST_SETS = 256
# What a migration costs is compared, whatever its unit is.
Weight = Callable[[ServerKind], int]

_Counts = tuple[int, ...]


@dataclass(frozen=True)
class Opening:
    """What one host gives when some of its servers leave.

    :ivar servers: those that leave
    :ivar gain: so many VMs it takes then, and not before
    :ivar cost: of their migrations, wherever they go
    """

    host: str
    servers: tuple[str, ...]
    gain: int
    cost: int


def openings(
    arrangement: Arrangement,
    kind: ServerKind,
    weight: Weight,
    hosts: Collection[str],
    *,
    wanted: int,
    limit: int,
    staying: Collection[str] = (),
) -> Iterator[Opening]:
    """Yield openings of hosts, those first that cost the least for each VM.

    :param wanted: more VMs than that are worth nothing
    :param limit: so many VMs of the kind are counted on a host, and as many more
    :param staying: IDs of servers that are not moved
    """
    number = itertools.count()
    planning = arrangement.planning
    least: list[tuple[float, str]] = []
    for name in hosts:
        costs = [weight(planning.kind(s)) for s in arrangement.movable(name)]
        if costs and (kind.allowed is None or name in kind.allowed):
            least.append((min(costs) / wanted, name))
    least.sort(reverse=True)
    heap: list[tuple[float, int, Opening]] = []
    while heap or least:
        # A host is looked at when nothing cheaper is left.
        if least and (not heap or least[-1][0] < heap[0][0]):
            _, name = least.pop()
            for found in _of_host(arrangement, name, kind, weight, limit, staying):
                price = found.cost / min(found.gain, wanted)
                heapq.heappush(heap, (price, next(number), found))
            continue
        yield heapq.heappop(heap)[2]


def _of_host(
    arrangement: Arrangement,
    name: str,
    kind: ServerKind,
    weight: Weight,
    limit: int,
    staying: Collection[str],
) -> list[Opening]:
    """Return the openings of one host; nobody leaves in vain."""
    host = arrangement.hosts[name]
    here = frozenset(s.id for s in host.view.servers if s.id in staying)
    key = kind, weight, limit, here
    if key not in host.openings:
        host.openings[key] = _find(arrangement, name, kind, weight, limit, here)
    found: list[Opening] = host.openings[key]
    return found


def _find(
    arrangement: Arrangement,
    name: str,
    kind: ServerKind,
    weight: Weight,
    limit: int,
    staying: Collection[str],
) -> list[Opening]:
    groups = _groups(arrangement, name, staying)
    if not groups:
        return []
    host = arrangement.hosts[name]
    planning = arrangement.planning
    costs = [weight(planning.kind(servers[0])) for servers in groups]
    now = host.room(kind, limit)
    seen: dict[_Counts, int] = {}

    def gain(counts: _Counts) -> int:
        if counts not in seen:
            some = _some(groups, counts)
            after = PlannedHost(planning, host.view.without(some))
            seen[counts] = after.room(kind, now + limit) - now
        return seen[counts]

    everybody = tuple(map(len, groups))
    most = gain(everybody)
    if most <= 0:
        return []

    def cost(counts: _Counts) -> int:
        return sum(n * c for n, c in zip(counts, costs, strict=True))

    sets = 1
    for count in everybody:
        sets *= count + 1
    if sets <= _MOST_SETS:
        chosen = _all(everybody, cost, gain, most)
    else:
        chosen = _some_minimal(everybody, costs, gain, most)
    return [
        Opening(
            name,
            tuple(s.id for s in _some(groups, counts)),
            gain(counts),
            cost(counts),
        )
        for counts in chosen
    ]


def _groups(
    arrangement: Arrangement, name: str, staying: Collection[str]
) -> list[list[Server]]:
    """Return the servers that may leave, those together that are alike."""
    found: dict[Hashable, list[Server]] = {}
    for server in arrangement.movable(name):
        if server.id in staying:
            continue
        cells = tuple((c.host_node, len(c.cpu_pinning)) for c in server.cells or ())
        key = arrangement.planning.kind(server), cells
        found.setdefault(key, []).append(server)
    return list(found.values())


def _some(groups: list[list[Server]], counts: _Counts) -> list[Server]:
    return [s for group, n in zip(groups, counts, strict=True) for s in group[:n]]


def _all(
    everybody: _Counts,
    cost: Callable[[_Counts], int],
    gain: Callable[[_Counts], int],
    most: int,
) -> list[_Counts]:
    """Return, for each gain that there is, the sets that need all their servers."""
    kept: list[tuple[_Counts, int]] = []
    ranges = [range(count + 1) for count in everybody]
    for counts in sorted(itertools.product(*ranges), key=cost):
        # What gives no more than a part of it gives needs not all of them.
        best = max(
            (
                g
                for part, g in kept
                if all(p <= c for p, c in zip(part, counts, strict=True))
            ),
            default=0,
        )
        if best < most and gain(counts) > best:
            kept.append((counts, gain(counts)))
    return [counts for counts, _ in kept]


def _some_minimal(
    everybody: _Counts,
    costs: list[int],
    gain: Callable[[_Counts], int],
    most: int,
) -> list[_Counts]:
    """Return a set for each gain, or two, of which nobody can be left out."""
    found: dict[_Counts, None] = {}
    order = sorted(range(len(everybody)), key=lambda index: costs[index])
    for wanted in range(1, most + 1):
        for indexes in (order[::-1], order):
            counts = list(everybody)
            for index in indexes:
                counts[index] = _fewest(counts, index, gain, wanted)
            found[tuple(counts)] = None
    return list(found)


def _fewest(
    counts: list[int], index: int, gain: Callable[[_Counts], int], wanted: int
) -> int:
    """Return how few of one group have to leave, by halving."""
    low, high = 0, counts[index]
    while low < high:
        middle = (low + high) // 2
        trial = (*counts[:index], middle, *counts[index + 1 :])
        if gain(trial) >= wanted:
            high = middle
        else:
            low = middle + 1
    return low
