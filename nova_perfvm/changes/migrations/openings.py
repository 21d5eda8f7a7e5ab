# SPDX-License-Identifier: Apache-2.0
"""Find servers that must leave a host so that it takes more VMs, cheapest first.

Servers that are alike form a group, and the question is how many of each group leave.
The smallest sets are found by shrinking one group after the other.
"""

from __future__ import annotations

import heapq
import itertools
from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from nova_perfvm.changes.migrations.arrangement import Arrangement, PlannedHost
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.facts.snapshot import Server

# The number of leaving servers of each group.
_Counts = tuple[int, ...]


@dataclass(frozen=True)
class Opening:
    """The room that a host offers after some servers have left.

    :ivar servers: IDs of the servers that leave, the costliest first
    :ivar gain: the number of further VMs that the host takes then
    :ivar cost_mb: of the servers' migrations, wherever they go
    """

    host: str
    servers: tuple[str, ...]
    gain: int
    cost_mb: int


def openings(
    now: Arrangement,
    kind: ServerKind,
    hosts: Collection[str],
    *,
    wanted: int = 1,
    limit: int = 1,
    staying: frozenset[str] = frozenset(),
) -> Iterator[Opening]:
    """Yield openings of hosts, the cheapest per VM first.

    :param wanted: the number of VMs wanted; a larger gain does not count
    :param limit: the most VMs of the kind that are counted on a host, and the most
        further VMs
    :param staying: IDs of servers that are not moved
    """
    number = itertools.count()
    # (price per VM, tie-break, entry).  A host's price is a lower bound for its
    # openings.
    heap: list[tuple[float, int, str | Opening]] = []
    for name in sorted(hosts):
        costs = [now.kind(s.id).cost_mb for s in now.movable(name)]
        if costs:
            heap.append((min(costs) / wanted, next(number), name))
    heapq.heapify(heap)
    while heap:
        _, _, found = heapq.heappop(heap)
        if isinstance(found, Opening):
            yield found
            continue
        # A host is examined when nothing cheaper is left.
        host = now.hosts[found]
        here = staying.intersection(server.id for server in host.view.servers)
        key = kind, limit, here
        if key not in host.openings:
            host.openings[key] = list(_find_openings(now, found, kind, limit, here))
        for opening in host.openings[key]:
            price = opening.cost_mb / min(opening.gain, wanted)
            heapq.heappush(heap, (price, next(number), opening))


def _find_openings(
    now: Arrangement, name: str, kind: ServerKind, limit: int, staying: frozenset[str]
) -> Iterator[Opening]:
    """Yield the openings of one host in which no server leaves needlessly."""
    host = now.hosts[name]
    # Servers that the new VM must be near to cannot make room for it.
    staying |= kind.request.anchors
    groups = [
        [server for server in group if server.id not in staying]
        for group in groups_of(now, name)
    ]
    # The costliest group first: the search first reduces the number of its servers that
    # leave.
    groups = sorted(
        filter(None, groups), key=lambda group: -now.kind(group[0].id).cost_mb
    )
    room = host.room(kind, limit)

    @cache
    def gain(counts: _Counts) -> int:
        view = host.view.without(_leaving(groups, counts))
        return PlannedHost(now.planning, view).room(kind, room + limit) - room

    everybody = tuple(map(len, groups))
    found: dict[_Counts, None] = {}
    for wanted in range(1, gain(everybody) + 1):
        for order in (range(len(groups)), reversed(range(len(groups)))):
            found[_smallest(everybody, wanted, order, gain)] = None
    for counts in found:
        servers = tuple(server.id for server in _leaving(groups, counts))
        cost_mb = sum(now.kind(name).cost_mb for name in servers)
        yield Opening(name, servers, gain(counts), cost_mb)


def _smallest(
    everybody: _Counts,
    wanted: int,
    order: Iterable[int],
    gain: Callable[[_Counts], int],
) -> _Counts:
    """Return the smallest number of leaving servers of each group for a gain.

    :param order: in which the groups are shrunk
    """
    counts = everybody
    for index in order:
        trials = [
            (*counts[:index], few, *counts[index + 1 :])
            for few in range(counts[index] + 1)
        ]
        counts = trials[bisect_left(trials, wanted, key=gain)]
    return counts


def groups_of(now: Arrangement, name: str) -> Sequence[Sequence[Server]]:
    """Return the movable servers of a host, in groups of servers that are alike."""
    found: dict[Hashable, list[Server]] = {}
    for server in now.movable(name):
        cells = tuple((c.host_node, len(c.cpu_pinning)) for c in server.cells or ())
        found.setdefault((now.kind(server.id), cells), []).append(server)
    return list(found.values())


def _leaving(groups: Sequence[Sequence[Server]], counts: _Counts) -> list[Server]:
    return [s for group, n in zip(groups, counts, strict=True) for s in group[:n]]
