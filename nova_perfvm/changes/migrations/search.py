# SPDX-License-Identifier: Apache-2.0
"""Search the best plan: solve the program, order the migrations, judge each, repeat.

Each migration is judged like every request, in the cloud after the migrations before
it.  The next program excludes places that refused a server, and those where Nova would
choose other NUMA nodes than the program.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nova_perfvm.changes.migrations.arrangement import Arrangement, PlannedHost
from nova_perfvm.changes.migrations.formulation import Formulation, Wanted
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.changes.migrations.scene import Goal, Landing, Scene
from nova_perfvm.diagnose import groups
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.facts.snapshot.groups import ANTI_AFFINITY

# The most programs that are solved, and the most hosts tried for a server in between.
_MOST_ROUNDS, _MOST_DETOURS = 12, 3


class Found(NamedTuple):
    """The best arrangement found, and the most that any plan gains.

    :ivar bound: VMs that fit in all, or servers that leave the host; None if unknown
    :ivar left_out: the number of hosts that the bound leaves out
    """

    end: Arrangement
    bound: int | None
    left_out: int = 0


class Pair(NamedTuple):
    """A server, and the place that it is to go to."""

    server: Server
    column: int
    place: Landing


def best(start: Arrangement, goal: Goal, value: Callable[[Arrangement], int]) -> Found:
    """Return the best arrangement found: the most value, by the fewest migrations.

    :param value: returns what an arrangement gains of the goal
    """
    end_s = time.monotonic() + start.planning.wishes.time_limit_s
    scene = Scene(start, goal)
    program = Formulation(scene)
    most, found, bound = value(start), start, None
    for _ in range(_MOST_ROUNDS):
        left_s = end_s - time.monotonic()
        wanted = program.solved(left_s, most) if left_s > 0 else None
        if bound is None and program.bound < math.inf:
            bound = int(program.bound)
        if wanted is None:
            break
        now, missed = _ordered(start, goal, list(_pairs(program, wanted)))
        if missed or len(now.moves) > sum(wanted.leaving.values()):
            now = without_needless(start, now, value)
        if value(now) > most:
            most, found = value(now), now
        if value(now) >= wanted.gained or not program.cut(wanted, missed, now):
            break
    return Found(found, bound, scene.left_out)


def _pairs(program: Formulation, wanted: Wanted) -> Iterator[Pair]:
    """Yield servers with places of their kind, on other hosts, as anti-affinity allows.

    Of the servers in the solution `wanted` the most get a place (Kuhn's algorithm).
    """
    kinds: dict[ServerKind, list[Server]] = defaultdict(list)
    for column, number in wanted.leaving.items():
        source = program.sources[column]
        kinds[source.kind] += source.servers[:number]
    gone = {server.id for servers in kinds.values() for server in servers}
    start, planning = program.scene.start, program.planning

    def suits(server: Server, column: int) -> bool:
        name, group = program.places[column].host, planning.group_of(server)
        if group is None or group.policy != ANTI_AFFINITY:
            return server.host != name
        view = start.hosts[name].view
        view = view.without([one for one in view.servers if one.id in gone])
        return server.host != name and not any(groups.reasons(group, server.id, view))

    for kind, servers in kinds.items():
        columns = [
            column
            for column, number in wanted.coming.items()
            if program.places[column].kind is kind
            for _ in range(number)
        ]
        given: dict[int, Server] = {}
        for server in servers:
            _give(server, columns, given, suits, set())
        for number, server in given.items():
            yield Pair(server, columns[number], program.places[columns[number]])


def _give(
    server: Server,
    columns: list[int],
    given: dict[int, Server],
    suits: Callable[[Server, int], bool],
    seen: set[int],
) -> bool:
    """Give a server a place, perhaps after others change theirs; return the success.

    :param given: the servers by the number of their place, which this changes
    """
    for number, column in enumerate(columns):
        if number not in seen and suits(server, column):
            seen.add(number)
            other = given.get(number)
            if other is None or _give(other, columns, given, suits, seen):
                given[number] = server
                return True
    return False


def _ordered(
    start: Arrangement, goal: Goal, pending: list[Pair]
) -> tuple[Arrangement, Counter[int]]:
    """Return the arrangement after the migrations that are possible, in some order.

    A server goes by way of a third host where servers wait for each other.

    :returns: also how many servers did not land on each place, by its column
    """
    now = start
    missed: Counter[int] = Counter()
    refused: dict[tuple[str, str], PlannedHost] = {}

    def tried(pair: Pair) -> Arrangement | None:
        key, host = (pair.server.id, pair.place.host), now.hosts[pair.place.host]
        if refused.get(key) is host:
            return None
        after = now.moved(pair.server.id, pair.place.host)
        if after is None:
            refused[key] = host
        return after

    while pending:
        found: tuple[Pair, Arrangement] | None = None
        for pair in pending:
            after = tried(pair)
            if after is not None:
                found = found or (pair, after)
                if _landed(after, pair):
                    found = pair, after
                    break
        if found is not None:
            pair, after = found
            missed[pair.column] += not _landed(after, pair)
            pending.remove(pair)
        else:
            after = _aside(now, goal, pending)
            if after is None:
                break
        now = after
    missed.update(pair.column for pair in pending)
    return now, +missed


def _aside(now: Arrangement, goal: Goal, pending: list[Pair]) -> Arrangement | None:
    """Return an arrangement in which a server waits on a third host; None without."""
    planning = now.planning
    budget = planning.wishes.max_moves
    if budget is not None and len(now.moves) + len(pending) >= budget:
        return None
    moved = {move.server for move in now.moves}
    for pair in pending:
        if pair.server.id in moved:
            continue
        kind, targets = now.kind(pair.server.id), planning.targets - {goal.host}
        for name in now.taking(kind, targets)[:_MOST_DETOURS]:
            after = now.moved(pair.server.id, name)
            if after is not None and after is not now:
                return after
    return None


def _landed(after: Arrangement, pair: Pair) -> bool:
    """Return whether a server is on the NUMA nodes of its place; true without nodes."""
    servers = after.hosts[pair.place.host].view.servers
    cells = next(s for s in servers if s.id == pair.server.id).cells or ()
    nodes = tuple(sorted(cell.host_node or 0 for cell in cells))
    return not pair.place.nodes or nodes == pair.place.nodes


def without_needless(
    start: Arrangement, end: Arrangement, value: Callable[[Arrangement], int]
) -> Arrangement:
    """Return the end of the plan without migrations that the value does not need."""
    least = value(end)
    for left_out in end.moves:
        # One verdict answers for most migrations; replaying the rest needs one a move.
        back = end.moved(left_out.server, left_out.source)
        if back is None or value(back) < least:
            continue
        now = start.made(move for move in end.moves if move != left_out)
        if now is not None and value(now) >= least:
            end = now
    return end
