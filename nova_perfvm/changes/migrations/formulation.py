# SPDX-License-Identifier: Apache-2.0
"""The mixed-integer program of a plan: who leaves, who comes where, what is gained.

Each arrangement that migrations reach is a solution of the program, though some
solutions are out of reach.  So no plan gains more than the best solution.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import permutations
from typing import Final, NamedTuple

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.density import crowding
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.changes.migrations.scene import (
    MOST_VMS,
    Landing,
    Resources,
    Scene,
    Source,
)
from nova_perfvm.diagnose import groups
from nova_perfvm.facts.snapshot.groups import ANTI_AFFINITY
from nova_perfvm.rules import packing
from nova_perfvm.solver import Program

# The VMs on a place that get a yes-or-no unknown each, which speeds up the search.
_MOST_LEVELS: Final = 4
# Shares of the time for a good gain, and of the rest for the most, and then for the
# fewest migrations.
_AT_FIRST, _FOR_GAIN, _FOR_MOVES = 0.4, 0.7, 0.6
_NEAR: Final = 1e-6
# The search for the best among equal gains may end this near to it.
_CLOSE: Final = 0.01
# General vCPUs for each CPU of a host that make a step of its density; the most steps.
_DENSITY_STEP, _MOST_STEPS = 0.25, 16
# The weight of a host's density before the plan: less than that of any step.
_FULLER: Final = 0.01
# The weight of a soft server group, and of slots that would be lost.
_LIKING: Final = 1000.0
SHARED: Final = ("VCPU", "root")


class Wanted(NamedTuple):
    """The servers that leave and come by a solution of the program.

    :ivar leaving: {column of a source: number of servers}
    :ivar coming: {column of a place: number of servers}
    :ivar gained: the VMs of the goal that fit in all, or servers that leave the host
    :ivar rooms: the VMs of the goal on each host
    """

    leaving: dict[int, int]
    coming: dict[int, int]
    gained: int
    rooms: dict[str, int]


class Formulation:
    """The program of a scene.

    :ivar sources: {column: servers that may leave}
    :ivar places: {column: NUMA nodes that may take servers}
    :ivar bound: the most that can be gained, by the searches so far; first infinity
    """

    def __init__(self, scene: Scene) -> None:
        self.scene, self.goal, self.planning = scene, scene.goal, scene.planning
        self.program = Program()
        self.bound = math.inf
        self._rows: dict[tuple[str, Hashable], dict[int, float]] = defaultdict(dict)
        self._out_of: dict[str, list[int]] = defaultdict(list)
        self._by_kind: dict[ServerKind, list[int]] = defaultdict(list)
        self._ins: dict[tuple[str, ServerKind], list[int]] = defaultdict(list)
        self._goal: dict[str, list[int]] = defaultdict(list)
        self._gain: dict[int, float] = {}
        self._liked: dict[int, float] = {}
        self.sources: dict[int, Source] = {}
        self.places: dict[int, Landing] = {}
        self._add_sources()
        self._add_places()
        if self.goal.kind is not None:
            self._add_vms(self.goal.kind)
        self._add_conflicts()
        self._add_resources()
        self._add_groups()
        self._add_density()
        self._add_preferences()

    def _add_sources(self) -> None:
        for source in self.scene.sources:
            column = self.program.column(len(source.servers))
            self.sources[column] = source
            self._out_of[source.host].append(column)
            self._by_kind[source.kind].append(column)
            for name, amount in source.releases.items():
                self._rows[source.host, name][column] = -amount
            if source.host == self.goal.host:
                self._gain[column] = 1
        most = self.planning.wishes.max_moves
        if most is not None:
            self.program.row(dict.fromkeys(self.sources, 1.0), most)

    def _add_places(self) -> None:
        """Add the servers that come to hosts: of each kind as many as leave others."""
        targets = self.planning.targets - {self.goal.host}
        for kind, leaving in self._by_kind.items():
            total = self.program.column()
            self.program.row({**dict.fromkeys(leaving, 1.0), total: -1}, 0, 0)
            here: dict[str, int] = defaultdict(int)
            for column in leaving:
                here[self.sources[column].host] += len(self.sources[column].servers)
            everywhere, coming = sum(here.values()), {}
            for place in self.scene.places(kind):
                most = min(everywhere - here[place.host], self._holds(place))
                if place.host in targets and most:
                    column = self.program.column(most)
                    coming[column] = 1.0
                    self.places[column] = place
                    self._ins[place.host, kind].append(column)
                    for name, amount in place.takes.items():
                        self._rows[place.host, name][column] = amount
            self.program.row({**coming, total: -1}, 0, 0)
            for host in here:
                # Nova moves no server to its own host.
                mine = [*self._ins.get((host, kind), ())]
                if mine:
                    mine += [c for c in leaving if self.sources[c].host == host]
                    self.program.row({**dict.fromkeys(mine, 1.0), total: -1}, 0)

    def _holds(self, place: Landing) -> int:
        """Return how many servers a place takes after the movable servers have left."""
        found = []
        for name, amount in place.takes.items():
            free = max(0, self.scene.free[place.host].get(name, 0))
            freed = sum(
                self.sources[column].releases.get(name, 0)
                * len(self.sources[column].servers)
                for column in self._out_of[place.host]
            )
            found.append((free + freed) // amount)
        return min(found, default=0)

    def _add_vms(self, kind: ServerKind) -> None:
        """Add the VMs of the goal, which find room like servers that come."""
        program, scene = self.program, self.scene
        for place in scene.places(kind):
            most = min(scene.most_vms(place.host), self._holds(place))
            free = scene.free[place.host]
            room = min(
                most,
                *(max(0, free[name]) // amount for name, amount in place.takes.items()),
            )
            # VMs that fit now, some that need room, each by a yes or no, and the rest.
            levels = min(_MOST_LEVELS, most - room)
            for vms, number in (
                (room, room),
                *((1, room + level) for level in range(1, levels + 1)),
                (most - room - levels, room + levels + 1),
            ):
                if vms:
                    column = program.column(vms)
                    self._gain[column] = 1
                    self._goal[place.host].append(column)
                    for name, amount in place.takes.items():
                        self._rows[place.host, name][column] = amount
                    if number > room:
                        self._cover(place, column, number)
        for host, columns in self._goal.items():
            most, now = scene.most_vms(host), scene.room(host)
            outs = dict.fromkeys(self._out_of[host], float(now - most))
            program.row({**dict.fromkeys(columns, 1.0), **outs}, now)
            program.row(dict.fromkeys(columns, 1.0), most)
        program.row(self._gain, self.goal.count)
        if self.planning.share_a_host(kind):
            chosen = {}
            for host, columns in self._goal.items():
                chosen[program.column(1)] = 1.0
                terms = dict.fromkeys(columns, 1.0)
                program.row({**terms, max(chosen): -float(scene.most_vms(host))}, 0)
            program.row(chosen, 1)

    def _cover(self, place: Landing, column: int, vms: int) -> None:
        """Say that servers free what VMs lack, which makes the search quick."""
        most, known = self.program.upper[column], set()
        for name, amount in place.takes.items():
            lack = amount * vms - max(0, self.scene.free[place.host].get(name, 0))
            if lack > 0:
                terms = {
                    out: min(lack, released) / lack
                    for out in self._out_of[place.host]
                    if (released := self.sources[out].releases.get(name, 0))
                }
                key = tuple(terms.items())
                if key not in known:
                    known.add(key)
                    self.program.row({**terms, column: -1.0 / most}, math.inf, 0)

    def _add_conflicts(self) -> None:
        """Keep classes apart on hosts where the verdict on one refuses the other."""
        program, class_of = self.program, self.scene.class_of
        kinds: dict[str, dict[str, ServerKind]] = defaultdict(dict)
        coming: dict[tuple[str, str], list[int]] = defaultdict(list)
        goals = [
            ((host, self.goal.kind), columns)
            for host, columns in self._goal.items()
            if self.goal.kind is not None
        ]
        for (host, kind), columns in (*self._ins.items(), *goals):
            kinds[host].setdefault(class_of(kind), kind)
            coming[host, class_of(kind)] += columns
        for host, here in kinds.items():
            arrives = {}
            leaving: dict[str, list[int]] = defaultdict(list)
            for column in self._out_of[host]:
                kind = self.sources[column].kind
                here.setdefault(class_of(kind), kind)
                leaving[class_of(kind)].append(column)
            for one, other in permutations(here, 2):
                if not self.scene.conflict(here[one], here[other], host):
                    continue
                for name, without in ((one, other), (other, one)):
                    if name not in arrives:
                        arrives[name] = program.column(1)
                        for column in coming[host, name]:
                            most = program.upper[column]
                            program.row({column: 1.0, arrives[name]: -most}, 0)
                    for column in leaving[without]:
                        most = program.upper[column]
                        program.row({column: 1.0, arrives[name]: -most}, math.inf, 0)
                program.row({arrives[one]: 1.0, arrives[other]: 1.0}, 1)

    def _add_resources(self) -> None:
        """Add the limit of each resource; equal rows, as of CPUs and memory, once."""
        known = set()
        for (host, name), terms in self._rows.items():
            unit = math.gcd(*map(int, terms.values()))
            most = max(0, self.scene.free[host].get(name, 0)) // unit
            row = {column: value / unit for column, value in terms.items()}
            used = sum(v * self.program.upper[c] for c, v in row.items() if v > 0)
            key = most, *row.items()
            if used > most and key not in known:
                known.add(key)
                self.program.row(row, most)
                if vms := next((row[c] for c in self._goal[host] if c in row), 0):
                    self.program.row(*_rounded(row, most, vms))

    def _add_groups(self) -> None:
        """Keep the servers of anti-affinity groups apart."""
        terms: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
        known = {}
        for (host, kind), columns in self._ins.items():
            group = kind.request.group
            if group is not None and group.policy == ANTI_AFFINITY:
                terms[host, group.id] |= dict.fromkeys(columns, 1.0)
                known[group.id] = group
        for column, source in self.sources.items():
            group = source.kind.request.group
            if group is not None and (source.host, group.id) in terms:
                terms[source.host, group.id][column] = -1.0
        for (host, name), found in terms.items():
            servers = self.scene.start.hosts[host].view.servers
            here = sum(server.id in known[name].members for server in servers)
            most = max(0, known[name].max_server_per_host - here)
            if sum(v * self.program.upper[c] for c, v in found.items() if v > 0) > most:
                self.program.row(found, most)

    def _add_density(self) -> None:
        """Add what it costs that general servers share CPUs: the more, the denser."""
        packs = self.goal.kind is not None
        by_host: dict[str, dict[int, float]] = defaultdict(dict)
        for column, place in self.places.items():
            if vcpus := place.takes.get(SHARED, 0):
                by_host[place.host][column] = vcpus
        for host, terms in by_host.items():
            root = self.scene.start.hosts[host].view.root
            total, used = root.total("VCPU"), root.used("VCPU")
            limit = self.planning.wishes.max_ratio
            if limit is not None:
                outs = {
                    c: self._rows[host, SHARED].get(c, 0) for c in self._out_of[host]
                }
                self.program.row({**terms, **outs}, max(0, limit * total - used))
            steps = {}
            for step in range(_MOST_STEPS):
                last = step == _MOST_STEPS - 1
                most = math.inf if last else total * _DENSITY_STEP
                column = self.program.column(most, whole=False)
                steps[column] = -1.0
                ratio = used / total + step * _DENSITY_STEP
                self._liked[column] = -crowding(ratio, packs=packs)
            self.program.row({**terms, **steps}, 0, 0)
            if packs:
                for column, taken in terms.items():
                    self._liked[column] = _FULLER * taken * used / total

    def _add_preferences(self) -> None:
        """Weigh places for the servers that come: by soft groups, and by slots lost."""
        for column, place in self.places.items():
            view = self.scene.start.hosts[place.host].view
            facts = place.kind.request.facts
            points = packing.score(self.planning.policy, facts, view.facts)
            liked = _LIKING * groups.rank(place.kind.request.group, view)
            if facts.pinned and self.goal.kind is None:
                liked += points / packing.FULL_SCALE
            elif not facts.pinned and points < packing.BROKEN:
                liked -= _LIKING
            if liked:
                self._liked[column] = liked + self._liked.get(column, 0)

    def solved(self, time_s: float, known: int) -> Wanted | None:
        """Return the solution with the most gain, the fewest migrations, the least MiB.

        General servers come to the hosts whose CPUs are shared least, by
        :func:`.density.crowding`.

        :param known: a gain that is known already
        :returns: None without a solution in time that gains more
        """
        end = time.monotonic() + time_s
        program = self.program
        near, gap = self._costly(), 1 - _NEAR
        found = program.most(self._gain, time_s * _AT_FIRST, gap, (), near)
        left = (end - time.monotonic()) * _FOR_GAIN
        found = program.most(self._gain, left, gap, found.values)
        if found.bound < math.inf:
            self.bound = min(self.bound, math.floor(found.bound + _NEAR))
        gained = self._sum(self._gain, found.values) if len(found.values) else 0
        if gained <= known:
            return None
        program.row(self._gain, math.inf, gained)
        moves = self._sum(dict.fromkeys(self.sources, 1), found.values)
        weights = {column: self._weight(s) for column, s in self.sources.items()}
        most = max(weights.values(), default=1) * (moves + 1)
        costs = {column: -1 - weight / most for column, weight in weights.items()}
        left = (end - time.monotonic()) * _FOR_MOVES
        used = {c for c in self.places if found.values[c] > _NEAR}
        values = program.most(costs, left, _CLOSE, found.values, near - used).values
        if self._liked:
            program.row(
                costs, math.inf, sum(costs[c] * values[c] for c in costs) - _NEAR
            )
            left = end - time.monotonic()
            values = program.most(self._liked, left, _CLOSE, values).values
            program.rows.pop()
        program.rows.pop()
        return Wanted(
            {c: n for c in self.sources if (n := round(values[c]))},
            {c: n for c in self.places if (n := round(values[c]))},
            gained,
            {
                host: self._sum(dict.fromkeys(columns, 1), values)
                for host, columns in self._goal.items()
            },
        )

    def cut(self, wanted: Wanted, missed: Mapping[int, int], now: Arrangement) -> bool:
        """Forbid what the verdict refused; return False if the verdict refused nothing.

        :param missed: how many servers did not land on each place, by its column
        :param now: the arrangement after the migrations that were possible
        """
        for column, number in missed.items():
            self.program.upper[column] = wanted.coming[column] - number
        short = (
            {
                host: room
                for host, most in wanted.rooms.items()
                if (room := now.hosts[host].room(self.goal.kind, MOST_VMS)) < most
            }
            if self.goal.kind and not missed
            else {}
        )
        for host, room in short.items():
            self.program.row(dict.fromkeys(self._goal[host], 1.0), room)
        return bool(missed or short)

    def _costly(self) -> set[int]:
        """Return columns of places without room now, or whose use costs goal VMs room.

        Without these places the search is quick, and mostly the gain is the same.
        """
        vms: dict[str, list[Landing]] = defaultdict(list)
        if self.goal.kind is not None:
            for place in self.scene.places(self.goal.kind):
                vms[place.host].append(place)

        def fitting(takes: Resources, free: Resources) -> int:
            return min(free.get(name, 0) // amount for name, amount in takes.items())

        found = set()
        for column, place in self.places.items():
            free = self.scene.free[place.host]
            left = {n: f - place.takes.get(n, 0) for n, f in free.items()}
            if fitting(place.takes, free) < 1 or any(
                fitting(vm.takes, left) < fitting(vm.takes, free)
                for vm in vms[place.host]
            ):
                found.add(column)
        return found

    def _weight(self, source: Source) -> float:
        """Return the cost of a migration in MiB, double if the forecast is failure."""
        planning, server = self.planning, source.servers[0]
        move = planning.move(server, source.host, "")
        stuck = not planning.estimates.moved(move)
        return source.kind.cost_mb * (2 if stuck else 1)

    def _sum(self, terms: Mapping[int, float], values: Sequence[float]) -> int:
        return round(sum(weight * values[column] for column, weight in terms.items()))


def _rounded(
    terms: Mapping[int, float], most: int, unit: float
) -> tuple[dict[int, float], float]:
    """Return a sharper row for whole columns: mixed-integer rounding by a unit.

    Without it the solver counts a half of a VM that a host loses as a half.
    """
    rest = most / unit % 1

    def rounded(value: float) -> float:
        return value // unit + max(0.0, value / unit % 1 - rest) / (1 - rest)

    return {c: v for c, a in terms.items() if (v := rounded(a))}, most // unit
