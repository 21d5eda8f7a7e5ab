# SPDX-License-Identifier: Apache-2.0
"""Pack VMs on the fewest equal hosts, and say how few hosts cannot be enough.

A *pattern* is the VMs of one host.  HiGHS finds patterns by column generation (Gilmore
and Gomory, 1961), whose linear program bounds the hosts from below.  Its most used
patterns give hosts; small numbers are decided by a program of all VMs on all hosts.
Without HiGHS a host is filled with the largest VMs that fit, and the bound is the sum
of what VMs take.
"""

from __future__ import annotations

import itertools
import math
import operator
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from nova_perfvm import solver
from nova_perfvm.sizing.hosts import Cell

# A limit of a host: its name, and the number of the NUMA node or the kind of VM.
_Row = tuple[str, int]
# Number of VMs of each kind on a host, in the order of the kinds.
_Pattern = tuple[int, ...]
_NEAR_0: Final = 1e-6
# Larger programs of VMs on hosts take HiGHS minutes.
_MOST_VARIABLES: Final = 2000


class VMKind(NamedTuple):
    """VMs that are alike.

    :ivar vms: number of the VMs
    :ivar cpus: CPUs that a VM takes on all of its NUMA nodes; ``memory_gb`` likewise
    :ivar cells: NUMA nodes that a VM is pinned to; 0 for VMs that share CPUs
    :ivar network_gbps: bandwidth that a VM uses
    :ivar disk_part: part of the host's disk that a VM takes
    :ivar alone: whether a host takes at most one of them
    :ivar class_name: the class that the VMs count for on a host
    """

    name: str
    vms: int
    cpus: float
    memory_gb: float
    cells: int = 0
    network_gbps: float = 0.0
    disk_part: float = 0.0
    alone: bool = False
    class_name: str = ""


@dataclass(frozen=True, slots=True)
class Bin:
    """An empty host.

    :ivar network_gbps: bandwidth of the link for all VMs; None for no limit
    :ivar most: (class, most VMs of it on the host), for classes with a limit
    """

    cells: tuple[Cell, ...]
    network_gbps: float | None = None
    most: tuple[tuple[str, int], ...] = ()


class Packing(NamedTuple):
    """The number of hosts that VMs take.

    :ivar hosts: hosts on which all VMs fit
    :ivar bound: no packing has fewer hosts
    :ivar solved: False if there are more hosts than `bound`, without HiGHS
    """

    hosts: int
    bound: int
    solved: bool


def pack(kinds: Sequence[VMKind], host: Bin, limit_s: float = 5.0) -> Packing:
    """Return on how many hosts the VMs fit; each kind has to fit an empty host.

    :param limit_s: seconds after which the best packing so far is returned
    """
    kinds = [kind for kind in kinds if kind.vms]
    if not kinds:
        return Packing(0, 0, solved=True)
    counts, limits = [kind.vms for kind in kinds], _limits(kinds, host)
    places = list(_places(kinds, host, limits))
    patterns = dict(_fill(kinds, host, limits))
    hosts, bound = sum(patterns.values()), _volume(counts, places, limits)
    if hosts <= bound:
        return Packing(hosts, hosts, solved=True)
    if not solver.installed():
        return Packing(hosts, bound, solved=False)
    search = _Search(places, limits, list(patterns), limit_s)
    relaxed, _ = search.relaxed(counts)
    bound = max(bound, math.ceil(relaxed - _NEAR_0 * hosts))
    if hosts > bound:
        hosts = min(hosts, search.hosts(counts))
    while bound < hosts and len(places) * bound <= _MOST_VARIABLES:
        fits = search.fits(counts, bound)
        if fits is None:
            break
        hosts, bound = (bound, bound) if fits else (hosts, bound + 1)
    return Packing(hosts, bound, solved=True)


class _Place(NamedTuple):
    """What a VM of a kind, or a VM's part on a NUMA node, takes of each limit.

    :ivar vms: 1; 0 for a part
    :ivar parts: number of the VM's parts, which have places of their own; 0 if the
        place has the whole VM
    """

    kind: int
    taken: Mapping[_Row, float]
    vms: int = 1
    parts: int = 0


def _limits(kinds: Sequence[VMKind], host: Bin) -> dict[_Row, float]:
    limits: dict[_Row, float] = {
        # VMs that share CPUs float over the NUMA nodes.
        ("all cpus", 0): sum(cell.cpus for cell in host.cells),
        ("all memory", 0): sum(cell.memory_gb for cell in host.cells),
        ("disk", 0): 1.0,
    }
    for number, cell in enumerate(host.cells):
        limits["cpus", number] = cell.cpus
        limits["memory", number] = cell.memory_gb
    if host.network_gbps is not None:
        limits["network", 0] = host.network_gbps
    limits |= {(f"vms of {name}", 0): most for name, most in host.most}
    alone = [number for number, kind in enumerate(kinds) if kind.alone]
    return limits | {("alone", number): 1 for number in alone}


def _places(
    kinds: Sequence[VMKind], host: Bin, limits: Mapping[_Row, float]
) -> Iterator[_Place]:
    nodes = range(len(host.cells))
    for number, kind in enumerate(kinds):
        common = _common(number, kind, limits)
        if 1 < kind.cells < len(nodes):
            # Sets of nodes are too many (735,471 of 8 out of 24): a place for the VM,
            # and one for its part on each node.
            yield _Place(number, common, parts=kind.cells)
            for node in nodes:
                yield _Place(number, _part(kind, node), vms=0)
            continue
        for chosen in itertools.combinations(nodes, kind.cells):
            taken = dict(common)
            for node in chosen:
                taken |= _part(kind, node)
            yield _Place(number, taken)


def _common(
    number: int, kind: VMKind, limits: Mapping[_Row, float]
) -> dict[_Row, float]:
    """Return what a VM takes of the limits of the whole host."""
    taken: dict[_Row, float] = {
        ("all cpus", 0): kind.cpus,
        ("all memory", 0): kind.memory_gb,
        ("network", 0): kind.network_gbps,
        ("disk", 0): kind.disk_part,
        (f"vms of {kind.class_name}", 0): 1,
        ("alone", number): 1,
    }
    return {row: part for row, part in taken.items() if row in limits}


def _part(kind: VMKind, node: int) -> dict[_Row, float]:
    """Return the CPUs and memory that a VM takes of a NUMA node."""
    return {
        ("cpus", node): kind.cpus / kind.cells,
        ("memory", node): kind.memory_gb / kind.cells,
    }


def _volume(
    counts: Sequence[int], places: Sequence[_Place], limits: Mapping[_Row, float]
) -> int:
    """Return the hosts that the scarcest limit alone needs, summed over the VMs."""
    # A VM takes the same of the whole host's limits on any NUMA nodes.
    each = {place.kind: place.taken for place in places if place.vms}
    totals = {
        row: math.fsum(n * each[kind].get(row, 0) for kind, n in enumerate(counts))
        for row in limits
        if row[0] not in {"cpus", "memory"}
    }
    return max(math.ceil(totals[row] / limits[row] - _NEAR_0) for row in totals)


class _Choice(NamedTuple):
    """The sets of NUMA nodes on which a VM's largest part of any limit is the same.

    :ivar part: the largest part that a VM takes of any limit on such a set
    :ivar nodes: {NUMA node: CPUs and memory that a VM takes of the node}
    :ivar tight: nodes on which a VM takes `part`; each set has one, except for VMs
        without NUMA nodes
    :ivar cells: NUMA nodes of a VM
    """

    kind: int
    part: float
    common: Mapping[_Row, float]
    nodes: Mapping[int, Mapping[_Row, float]]
    tight: frozenset[int]
    cells: int

    def taken(self, free: Mapping[_Row, float]) -> Mapping[_Row, float] | None:
        """Return what a VM takes on the first nodes with room; None without room."""
        if not _fits(self.common, free):
            return None
        room = [node for node, part in self.nodes.items() if _fits(part, free)]
        chosen = room[: self.cells]
        if self.tight.isdisjoint(chosen):
            tight = [node for node in room if node in self.tight]
            chosen = chosen[:-1] + tight[:1]
        if len(chosen) < self.cells:
            return None
        taken = dict(self.common)
        for node in chosen:
            taken |= self.nodes[node]
        return taken


def _fits(taken: Mapping[_Row, float], free: Mapping[_Row, float]) -> bool:
    return all(free[row] + _NEAR_0 >= part for row, part in taken.items())


def _choices(
    kinds: Sequence[VMKind], host: Bin, limits: Mapping[_Row, float]
) -> Iterator[_Choice]:
    def largest(taken: Mapping[_Row, float]) -> float:
        return max(part / limits[row] for row, part in taken.items())

    for number, kind in enumerate(kinds):
        common = _common(number, kind, limits)
        nodes = {}
        if kind.cells:
            nodes = {node: _part(kind, node) for node in range(len(host.cells))}
        parts = {node: largest(common | part) for node, part in nodes.items()}
        for most in set(parts.values()) or {largest(common)}:
            yield _Choice(
                number,
                most,
                common,
                {node: part for node, part in nodes.items() if parts[node] <= most},
                frozenset(node for node, part in parts.items() if part == most),
                kind.cells,
            )


def _fill(
    kinds: Sequence[VMKind], host: Bin, limits: Mapping[_Row, float]
) -> Iterator[tuple[_Pattern, int]]:
    """Yield patterns and their number: each host is filled, the largest VMs first."""
    left = [kind.vms for kind in kinds]
    choices = _choices(kinds, host, limits)
    ordered = sorted(choices, key=operator.attrgetter("part"), reverse=True)
    while any(left):
        free, pattern = dict(limits), [0] * len(left)
        for choice in ordered:
            kind = choice.kind
            while pattern[kind] < left[kind] and (taken := choice.taken(free)):
                pattern[kind] += 1
                for row, part in taken.items():
                    free[row] -= part
        times = min(n // many for n, many in zip(left, pattern, strict=True) if many)
        left = [n - times * many for n, many in zip(left, pattern, strict=True)]
        yield tuple(pattern), times


class _Search:
    """The search for few hosts by HiGHS, within a time."""

    def __init__(
        self,
        places: Sequence[_Place],
        limits: Mapping[_Row, float],
        patterns: list[_Pattern],
        limit_s: float,
    ) -> None:
        self._places, self._limits, self._patterns = places, limits, patterns
        self._end = time.monotonic() + limit_s

    def relaxed(self, counts: Sequence[int]) -> tuple[float, Sequence[float]]:
        """Add patterns until none improves the linear program of some VMs.

        :returns: a lower bound of the hosts, and how often each pattern is used: none
            when the time is over
        """
        best = 0.0
        while True:
            program = solver.Program()
            hosts = [program.column(whole=False) for _ in self._patterns]
            for kind, vms in enumerate(counts):
                found = {n: self._patterns[n][kind] for n in hosts}
                program.row({n: many for n, many in found.items() if many}, least=vms)
            solution = program.most(dict.fromkeys(hosts, -1.0), self._left_s)
            if not solution.values:
                return best, ()
            prices = [max(0.0, -worth) for worth in solution.duals]
            worth, pattern = self._best_pattern(prices, counts)
            # No pattern is worth more, so prices / worth solve the dual (Farley, 1990).
            total = math.fsum(map(operator.mul, prices, counts))
            best = max(best, total / max(1.0, worth))
            if worth <= 1 + _NEAR_0 or pattern is None or pattern in self._patterns:
                return best, solution.values
            self._patterns.append(pattern)

    def hosts(self, counts: Sequence[int]) -> int:
        """Return the hosts if the program's most used pattern is taken each time.

        :returns: the number of VMs when the time is over before, a host for each
        """
        hosts, most_hosts = 0, sum(counts)
        while any(counts):
            _, used = self.relaxed(counts)
            if not used or time.monotonic() > self._end:
                return most_hosts
            most = max(range(len(used)), key=lambda number: used[number])
            times = max(1, math.floor(used[most] + _NEAR_0))
            hosts += times
            pairs = zip(counts, self._patterns[most], strict=True)
            counts = [max(0, n - times * many) for n, many in pairs]
        return hosts

    def fits(self, counts: Sequence[int], hosts: int) -> bool | None:
        """Return whether the VMs fit so many hosts; None when the time is over."""
        program = solver.Program()
        columns: list[dict[int, float]] = [{} for _ in counts]
        for _ in range(hosts):
            for column, place in zip(
                self._host(program, counts), self._places, strict=True
            ):
                if place.vms:
                    columns[place.kind][column] = 1.0
        for terms, vms in zip(columns, counts, strict=True):
            program.row(terms, least=vms)
        solution = program.most({}, self._left_s)
        if solution.values:
            return True
        return False if solution.infeasible else None

    def _best_pattern(
        self, prices: Sequence[float], counts: Sequence[int]
    ) -> tuple[float, _Pattern | None]:
        """Return a bound of a pattern's worth, and the pattern worth most.

        :returns: an infinite bound and no pattern when the time is over
        """
        program = solver.Program()
        columns = self._host(program, counts)
        worth = {
            column: prices[place.kind]
            for column, place in zip(columns, self._places, strict=True)
            if place.vms
        }
        solution = program.most(worth, self._left_s)
        if time.monotonic() > self._end or not solution.values:
            return math.inf, None
        pattern = [0] * len(counts)
        for place, many in zip(self._places, solution.values, strict=True):
            pattern[place.kind] += place.vms * round(many)
        return solution.bound, tuple(pattern)

    def _host(self, program: solver.Program, counts: Sequence[int]) -> list[int]:
        """Add a host: its limits, and a column for each place; return the columns."""
        columns = [program.column(counts[place.kind]) for place in self._places]
        for row, limit in self._limits.items():
            parts = zip(columns, self._places, strict=True)
            terms = {c: p.taken[row] for c, p in parts if row in p.taken}
            program.row(terms, limit)
        self._divide(program, columns)
        return columns

    def _divide(self, program: solver.Program, columns: Sequence[int]) -> None:
        """Give each VM of a host's columns all its parts, at most one a NUMA node."""
        pairs = [*zip(columns, self._places, strict=True)]
        for vms, whole in pairs:
            if not whole.parts:
                continue
            parts = [c for c, p in pairs if p.kind == whole.kind and not p.vms]
            program.row({vms: -whole.parts, **dict.fromkeys(parts, 1.0)}, 0, 0)
            for part in parts:
                program.row({vms: -1.0, part: 1.0}, 0)

    @property
    def _left_s(self) -> float:
        return self._end - time.monotonic()
