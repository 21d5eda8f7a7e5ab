# SPDX-License-Identifier: Apache-2.0
"""A simple search for plans, for machines without the solver.

Hosts are emptied of as few servers as make room, the cheapest first; each server goes
to the host that loses the least by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nova_perfvm.changes.migrations.arrangement import Arrangement, PlannedHost
from nova_perfvm.changes.migrations.density import crowding
from nova_perfvm.changes.migrations.scene import MOST_VMS, Goal
from nova_perfvm.facts.snapshot import Server

# The most sets of servers tried for one more VM; the most hosts tried for a server.
_MOST_TRIED, _MOST_HOSTS = 50, 8


def best(
    start: Arrangement, goal: Goal, value: Callable[[Arrangement], int]
) -> Arrangement:
    """Return an arrangement that gains much, by the cheapest useful moves each time.

    :param value: returns what an arrangement gains of the goal
    """
    if goal.kind is None:
        now = start
        for server in sorted(start.movable(goal.host), key=lambda s: -s.memory_mb):
            now = _left(now, [server], goal) or now
        return now
    now, most = start, start.planning.wishes.max_moves
    known: dict[PlannedHost, list[Sequence[Server]]] = {}
    while value(now) < goal.count:
        for name, host in now.hosts.items():
            if host not in known:
                known[host] = list(_sets(now, name, goal))
        every = [one for host in now.hosts.values() for one in known[host]]
        sets = sorted(every, key=_cost)[:_MOST_TRIED]
        for servers in sets:
            if most is not None and len(now.moves) + len(servers) > most:
                continue
            after = _left(now, servers, goal)
            if after is not None and value(after) > value(now):
                now = after
                break
        else:
            break
    return now


def _sets(now: Arrangement, name: str, goal: Goal) -> Iterator[Sequence[Server]]:
    """Yield sets of a host's servers; after one set has left, more VMs find room."""
    kind, view = goal.kind, now.hosts[name].view
    assert kind is not None
    movable = [s for s in now.movable(name) if s.id not in kind.request.anchors]
    nodes = {cell.host_node for s in movable for cell in s.cells or ()}
    room = now.hosts[name].room(kind, MOST_VMS)

    def more(servers: Sequence[Server]) -> bool:
        left = PlannedHost(now.planning, view.without(servers))
        return left.room(kind, MOST_VMS) > room

    for node in (*nodes, None):
        there = [
            s
            for s in movable
            if node is None or any(c.host_node == node for c in s.cells or ())
        ]
        if there and more(there):
            for server in sorted(there, key=lambda s: s.vcpus):
                if more([s for s in there if s is not server]):
                    there.remove(server)
            yield there


def _left(
    now: Arrangement, servers: Sequence[Server], goal: Goal
) -> Arrangement | None:
    """Return the arrangement after servers have left; None if one finds no host."""
    for server in sorted(servers, key=lambda s: -s.vcpus):
        kind = now.kind(server.id)
        mine = {goal.host, now.host_of(server.id)}
        taking = now.taking(kind, now.planning.targets - mine)
        if not kind.request.facts.pinned:
            most, vcpus = now.planning.wishes.max_ratio, server.vcpus
            density = {name: _density(now.hosts[name], vcpus) for name in taking}
            fitting = [n for n in taking if most is None or density[n] <= most]
            packs = goal.kind is not None
            taking = sorted(
                fitting,
                key=lambda n: (crowding(density[n], packs=packs), -density[n] * packs),
            )
        wanted = goal.kind
        if wanted is not None:
            # Hosts without room for the goal lose none.
            rooms = {name: now.hosts[name].room(wanted, MOST_VMS) for name in taking}
            taking.sort(key=rooms.__getitem__)
        moved = [now.moved(server.id, name) for name in taking[:_MOST_HOSTS]]
        there = [after for after in moved if after is not None]
        if wanted is not None:
            there.sort(key=lambda after: -_room(after, goal))
        if not there:
            return None
        now = there[0]
    return now


def _cost(servers: Sequence[Server]) -> tuple[int, int]:
    return len(servers), sum(server.vcpus for server in servers)


def _room(now: Arrangement, goal: Goal) -> int:
    assert goal.kind is not None
    return now.room(goal.kind, goal.count)


def _density(host: PlannedHost, vcpus: int) -> float:
    root = host.view.root
    return (root.used("VCPU") + vcpus) / max(1, root.total("VCPU"))
