# SPDX-License-Identifier: Apache-2.0
"""Pack VMs on the fewest equal hosts, and say how few hosts cannot be enough.

A *pattern* is the VMs of one host.  HiGHS finds patterns by column generation (Gilmore
and Gomory, 1961): its linear program bounds the hosts from below, and an integer
program over the patterns found gives the hosts.  Without HiGHS a host is filled with
the largest VMs that fit, and the bound is the sum of what VMs take.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from nova_perfvm.sizing.hosts import Cell

if TYPE_CHECKING:
    import highspy

# Number of VMs of each kind on a host, in the order of the kinds.
_Pattern = tuple[int, ...]
_NEAR_0: Final = 1e-6
# Larger programs of VMs on hosts take HiGHS minutes.
_MOST_VARIABLES: Final = 2000


class VMKind(NamedTuple):
    """VMs that are alike.

    :ivar vms: how many there are
    :ivar cpus: CPUs that a VM takes, on all of its NUMA nodes together
    :ivar cells: NUMA nodes that a VM is pinned to; 0 for VMs that share CPUs
    :ivar network_gbps: what a VM uses of the host's link
    :ivar disk_part: part of the host's disk that a VM takes
    :ivar alone: whether a host takes at most one of them
    """

    name: str
    vms: int
    cpus: float
    memory_gb: float
    cells: int = 0
    network_gbps: float = 0.0
    disk_part: float = 0.0
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Bin:
    """An empty host.

    :ivar network_gbps: what all VMs may use of its link; None for no limit
    :ivar most: VMs that it takes at most; None for no limit
    """

    cells: tuple[Cell, ...]
    network_gbps: float | None = None
    most: int | None = None


class Packing(NamedTuple):
    """The result.

    :ivar hosts: hosts on which all VMs fit
    :ivar bound: no packing has fewer hosts
    :ivar solved: whether HiGHS found them
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
    rows = _Rows(kinds, host)
    patterns = dict(_fill(kinds, rows))
    hosts, bound = sum(patterns.values()), rows.volume_bound()
    if hosts <= bound:
        return Packing(hosts, hosts, solved=True)
    try:
        import highspy  # noqa: F401, PLC0415
    except ImportError:
        return Packing(hosts, bound, solved=False)
    generated = _ColumnGeneration(kinds, rows, list(patterns), limit_s)
    bound = max(bound, generated.bound())
    if hosts > bound:
        hosts = generated.hosts(hosts, bound)
    while bound < hosts and len(rows.places) * bound <= _MOST_VARIABLES:
        fits = _fits(kinds, rows, bound, generated.left_s)
        if fits is None:
            break
        hosts, bound = (bound, bound) if fits else (hosts, bound + 1)
    return Packing(hosts, bound, solved=True)


class _Place(NamedTuple):
    """A kind of VM on NUMA nodes of a host."""

    kind: int
    cells: tuple[int, ...]


class _Rows:
    """The limits of a host: {row: limit}, and what a VM takes of each row."""

    def __init__(self, kinds: Sequence[VMKind], host: Bin) -> None:
        self.kinds = kinds
        every = range(len(host.cells))
        self.places = [
            _Place(number, cells)
            for number, kind in enumerate(kinds)
            for cells in itertools.combinations(every, kind.cells or len(every))
        ]
        self.limits: dict[tuple[str, int], float] = {}
        for number, cell in enumerate(host.cells):
            self.limits["cpus", number] = cell.cpus
            self.limits["memory", number] = cell.memory_gb
        # VMs that share CPUs float over the NUMA nodes.
        self.limits["all cpus", 0] = sum(cell.cpus for cell in host.cells)
        self.limits["all memory", 0] = sum(cell.memory_gb for cell in host.cells)
        self.limits["disk", 0] = 1.0
        if host.network_gbps is not None:
            self.limits["network", 0] = host.network_gbps
        if host.most is not None:
            self.limits["vms", 0] = host.most
        for number, kind in enumerate(kinds):
            if kind.alone:
                self.limits["alone", number] = 1
        self.taken = [
            {row: part for row, part in self._taken(place) if row in self.limits}
            for place in self.places
        ]

    def _taken(self, place: _Place) -> Iterator[tuple[tuple[str, int], float]]:
        kind = self.kinds[place.kind]
        if kind.cells:
            for cell in place.cells:
                yield ("cpus", cell), kind.cpus / kind.cells
                yield ("memory", cell), kind.memory_gb / kind.cells
        yield ("all cpus", 0), kind.cpus
        yield ("all memory", 0), kind.memory_gb
        yield ("network", 0), kind.network_gbps
        yield ("disk", 0), kind.disk_part
        yield ("vms", 0), 1
        yield ("alone", place.kind), 1

    def volume_bound(self) -> int:
        """Return the hosts that the VMs need of the scarcest of what hosts have."""
        first = {place.kind: taken for place, taken in self._first_places()}
        needed = (
            [max(kind.vms for kind in self.kinds if kind.alone)]
            if any(kind.alone for kind in self.kinds)
            else [1]
        )
        for row, limit in self.limits.items():
            if row[0] in {"cpus", "memory", "alone"} or not limit:
                continue
            total = sum(
                kind.vms * first[number].get(row, 0)
                for number, kind in enumerate(self.kinds)
            )
            needed.append(math.ceil(total / limit - _NEAR_0))
        return max(needed)

    def _first_places(self) -> Iterator[tuple[_Place, Mapping[tuple[str, int], float]]]:
        seen = set()
        for place, taken in zip(self.places, self.taken, strict=True):
            if place.kind not in seen:
                seen.add(place.kind)
                yield place, taken


def _fill(kinds: Sequence[VMKind], rows: _Rows) -> Iterator[tuple[_Pattern, int]]:
    """Yield patterns and their number: each host is filled, the largest VMs first."""
    left = [kind.vms for kind in kinds]
    # A VM of a kind takes the same of a host on whichever nodes.
    largest = {
        place.kind: max(part / rows.limits[row] for row, part in taken.items())
        for place, taken in zip(rows.places, rows.taken, strict=True)
    }
    order = sorted(
        range(len(rows.places)), key=lambda at: -largest[rows.places[at].kind]
    )
    while any(left):
        free = dict(rows.limits)
        pattern = [0] * len(kinds)
        for at in order:
            taken, number = rows.taken[at], rows.places[at].kind
            while pattern[number] < left[number] and all(
                free[row] + _NEAR_0 >= part for row, part in taken.items()
            ):
                pattern[number] += 1
                for row, part in taken.items():
                    free[row] -= part
        times = min(left[n] // many for n, many in enumerate(pattern) if many)
        for number, many in enumerate(pattern):
            left[number] -= times * many
        yield tuple(pattern), times


class _ColumnGeneration:
    """The linear program over patterns, and the search for further patterns."""

    def __init__(
        self,
        kinds: Sequence[VMKind],
        rows: _Rows,
        patterns: Sequence[_Pattern],
        limit_s: float,
    ) -> None:
        self._counts = [kind.vms for kind in kinds]
        self._end = time.monotonic() + limit_s
        self._patterns = list(patterns)
        self._places = rows.places
        self._pricing = _pricing(rows)

    def bound(self) -> int:
        """Return the bound of the linear program, or what is known of it in time."""
        bound, _ = self._solved(self._counts)
        return math.ceil(bound - 1e-4)

    def hosts(self, known: int, bound: int) -> int:
        """Return the fewest hosts that were found, at most `known`."""
        known = min(known, self._dive())
        if known <= bound:
            return known
        model = self._master(self._counts, integer=True)
        # Hosts are whole numbers: nothing lies between.
        model.setOptionValue("mip_abs_gap", 1 - _NEAR_0)
        model.setOptionValue("time_limit", max(1.0, self.left_s))
        model.run()
        if not _feasible(model):
            return known
        return min(known, round(model.getInfo().objective_function_value))

    def _dive(self) -> int:
        """Return hosts by fixing the largest numbers of the linear program's patterns.

        Each time patterns are searched for the VMs that are left.
        """
        left, hosts = self._counts, 0
        while any(left):
            if self.left_s <= 0:
                return sum(self._counts)
            _, values = self._solved(left)
            largest = max(range(len(values)), key=lambda number: values[number])
            times = max(1, math.floor(values[largest] + _NEAR_0))
            hosts += times
            left = [
                max(0, count - times * many)
                for count, many in zip(left, self._patterns[largest], strict=True)
            ]
        return hosts

    @property
    def left_s(self) -> float:
        """Seconds that are left of the search."""
        return self._end - time.monotonic()

    def _solved(self, counts: Sequence[int]) -> tuple[float, Sequence[float]]:
        """Add patterns until none improves the linear program for some VMs.

        :returns: a lower bound of the hosts, and the number of each pattern
        """
        best = 0.0
        while True:
            model = self._master(counts, integer=False)
            model.run()
            prices = list(model.getSolution().row_dual)
            values = list(model.getSolution().col_value)
            worth, pattern = self._best_pattern(prices, counts)
            # No pattern is worth more, so prices / worth solve the dual (Farley, 1990).
            objective = model.getInfo().objective_function_value
            best = max(best, objective / max(1.0, worth))
            if worth <= 1 + _NEAR_0 or pattern is None or pattern in self._patterns:
                return best, values
            self._patterns.append(pattern)

    def _master(self, counts: Sequence[int], *, integer: bool) -> highspy.Highs:
        import highspy  # noqa: PLC0415

        model = _silent()
        for count in counts:
            model.addRow(count, highspy.kHighsInf, 0, [], [])
        for number, pattern in enumerate(self._patterns):
            having = [n for n, many in enumerate(pattern) if many]
            values = [float(pattern[n]) for n in having]
            model.addCol(1.0, 0.0, highspy.kHighsInf, len(having), having, values)
            if integer:
                model.changeColIntegrality(number, highspy.HighsVarType.kInteger)
        return model

    def _best_pattern(
        self, prices: Sequence[float], counts: Sequence[int]
    ) -> tuple[float, _Pattern | None]:
        """Return a bound of a pattern's worth, and the pattern worth most.

        No pattern, and an infinite bound, when the time is over.
        """
        model = self._pricing
        for at, place in enumerate(self._places):
            model.changeColCost(at, prices[place.kind])
            model.changeColBounds(at, 0.0, counts[place.kind])
        left_s = self.left_s
        model.setOptionValue("time_limit", model.getRunTime() + max(0.0, left_s))
        model.run()
        if left_s <= 0 or not _feasible(model):
            return math.inf, None
        pattern = [0] * len(counts)
        for place, many in zip(
            self._places, model.getSolution().col_value, strict=True
        ):
            pattern[place.kind] += round(many)
        return model.getInfo().mip_dual_bound, tuple(pattern)


def _pricing(rows: _Rows) -> highspy.Highs:
    """Return the integer program of what one host takes."""
    import highspy  # noqa: PLC0415

    model = _silent()
    numbers = {row: number for number, row in enumerate(rows.limits)}
    for limit in rows.limits.values():
        model.addRow(-highspy.kHighsInf, float(limit), 0, [], [])
    for at, (place, taken) in enumerate(zip(rows.places, rows.taken, strict=True)):
        where = [numbers[row] for row in taken]
        most = float(rows.kinds[place.kind].vms)
        model.addCol(0.0, 0.0, most, len(where), where, list(taken.values()))
        model.changeColIntegrality(at, highspy.HighsVarType.kInteger)
    model.changeObjectiveSense(highspy.ObjSense.kMaximize)
    return model


def _fits(
    kinds: Sequence[VMKind], rows: _Rows, hosts: int, limit_s: float
) -> bool | None:
    """Return whether the VMs fit so many hosts; None if HiGHS finds out too late."""
    import highspy  # noqa: PLC0415

    model = _silent()
    for kind in kinds:
        model.addRow(kind.vms, highspy.kHighsInf, 0, [], [])
    for _ in range(hosts):
        first = model.getNumRow()
        numbers = {row: first + at for at, row in enumerate(rows.limits)}
        for limit in rows.limits.values():
            model.addRow(-highspy.kHighsInf, float(limit), 0, [], [])
        for place, taken in zip(rows.places, rows.taken, strict=True):
            where = [place.kind, *(numbers[row] for row in taken)]
            most = float(kinds[place.kind].vms)
            model.addCol(0.0, 0.0, most, len(where), where, [1.0, *taken.values()])
            model.changeColIntegrality(
                model.getNumCol() - 1, highspy.HighsVarType.kInteger
            )
    model.setOptionValue("time_limit", max(0.1, limit_s))
    model.run()
    if _feasible(model):
        return True
    infeasible = highspy.HighsModelStatus.kInfeasible
    return False if model.getModelStatus() == infeasible else None


def _feasible(model: highspy.Highs) -> bool:
    import highspy  # noqa: PLC0415

    found: bool = (
        model.getInfo().primal_solution_status == highspy.kSolutionStatusFeasible
    )
    return found


def _silent() -> highspy.Highs:
    import highspy  # noqa: PLC0415

    model = highspy.Highs()  # type: ignore[no-untyped-call]
    model.setOptionValue("output_flag", False)  # noqa: FBT003 - HiGHS' own
    # One thread, as the command may run beside a cloud's services.
    model.setOptionValue("threads", 1)
    model.setOptionValue("mip_rel_gap", 0.0)
    return model
