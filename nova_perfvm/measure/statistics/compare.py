# SPDX-License-Identifier: Apache-2.0
"""VMs against their host, metric by metric and for each number of threads."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.findings import Level
from nova_perfvm.measure.collect.collected import Kind
from nova_perfvm.measure.samples import Better, Measurement
from nova_perfvm.measure.statistics.intervals import Estimate, estimate
from nova_perfvm.measure.statistics.verdict import judge, slow_remark
from nova_perfvm.printable import number_of

# LY: 70 to 80 % of a physical server.
TARGET: Final = 0.70
# A VM's timer or request passes two kernels, the host's and its own.  Where each is as
# late as the host's kernel alone, both together exceed twice the host's percentile
# in no more than twice its share of cases, whether one delays the other or not (union
# bound).  A vCPU that waits for a CPU waits for milliseconds and misses it by far.
LATENCY_TARGET: Final = 2.0
# An assumption: a VM beats its host in a percent or two by placement of its memory
# and by chance; what is faster by more was compared with a host that was slowed.
_TOO_GOOD: Final = 1.05
# The first words of metrics of what all VMs of a host share.
_SHARED: Final = frozenset({"network", "disk"})
_FEATURES: Final = ("kernel", "cpu_model", "governor")

Against = Literal["host", "share"]


class CannotCompareError(PerfVMError):
    """Measurements without a host, or without VMs."""


class ComparedGroup(NamedTuple):
    """The key of comparable figures.

    :ivar at_once: number of VMs that were measured at the same time
    :ivar loaded_neighbours: number of VMs that were busy beside, and not measured
    """

    metric: str
    threads: int
    at_once: int
    loaded_neighbours: int = 0

    @property
    def beside(self) -> str:
        """The busy VMs in words, to follow the number of measured VMs."""
        busy = self.loaded_neighbours
        return f" beside {busy} busy" if busy else ""

    @property
    def how(self) -> str:
        """How it was measured."""
        threads = number_of(self.threads, "thread")
        return f"{threads}, {self.at_once} at once{self.beside}"

    def __str__(self) -> str:
        """Return the figure and how it was measured."""
        return f"{self.metric}, {self.how}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One VM against the host in one metric.

    :ivar group: the metric and the conditions of its measurement
    :ivar vs_host: value / one run on the host; None without a baseline
    :ivar vs_share: value / (sum of the host's runs at once / number of VMs); None
        for latencies, which VMs do not share
    :ivar against: the ratio that the target limits
    :ivar target: the least ratio that passes; where lower is better, the most
    :ivar level: OK, unknown or a failure
    :ivar reason: cause of another level than OK
    :ivar remarks: causes of doubt about the ratio
    :ivar doubts: the remarks that may flatter the VM, or leave the compared machines
        unknown
    :ivar primary: whether the verdict rests on this comparison, as declared before
        the measurement; other comparisons are information
    """

    group: ComparedGroup
    unit: str
    better: Better
    who: str
    vs_host: Estimate | None
    vs_share: Estimate | None
    against: Against
    target: float
    level: Level
    reason: str
    remarks: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    primary: bool = False

    @property
    def judged(self) -> Estimate | None:
        """The ratio that the target is for."""
        return self.vs_share if self.against == "share" else self.vs_host


# The values of a group: {round: {who: geometric mean of its repeats}}.
Rounds = Mapping[int, Mapping[str, float]]


def compare(
    measurements: Collection[Measurement],
    *,
    target: float = TARGET,
    latency_target: float = LATENCY_TARGET,
    vms: int | None = None,
    is_primary: Callable[[ComparedGroup, Better], bool] | None = None,
) -> list[Comparison]:
    """Return each VM's comparison, in the order of the measurements.

    :param target: the least part of the host's throughput that passes
    :param latency_target: the largest VM's latency / host's latency that passes
    :param vms: number of VMs that share the host; None for the number measured at once
    :param is_primary: selects the groups that the verdict rests on, which are judged
        together; None to judge each group by itself
    :raises CannotCompareError: when no host or no VM was measured
    """
    hosts, guests = (
        grouped(m for m in measurements if m.machine.kind == kind)
        for kind in ("host", "guest")
    )
    for there, words in ((hosts, "the host, the baseline"), (guests, "a VM")):
        if not there:
            raise CannotCompareError(
                f"no measurement of {words} (machine.kind): measure it in the same "
                "rounds, or name its file, too"
            )
    betters = {m.metric: m.better for m in measurements}
    primary, of_rows = set(guests), 1
    if is_primary is not None:
        primary = {g for g in guests if is_primary(g, betters[g.metric])}
        of_rows = sum(len(_names(guests[group])) for group in primary)
    found = []
    for group, rounds in guests.items():
        better = betters[group.metric]
        limit = _target(group.metric, better, target, latency_target)
        baseline = _baseline(hosts, group)
        shared = better == "higher" and group.metric.split(".")[0] in _SHARED
        for who in _names(rounds):
            own = {number: v[who] for number, v in rounds.items() if who in v}
            ratios = ratios_of(own, baseline, vms or group.at_once)
            judged = ratios and (ratios.vs_share if shared else ratios.vs_host)
            if judged is None:
                level = Level.UNKNOWN
                reason = (
                    f"no baseline: measure {group.metric} on the host with "
                    f"{group.threads} threads"
                )
            else:
                rows = of_rows if group in primary else 1
                level, reason = judge(judged, limit, better, rows)
                if ratios and ratios.apart and level is Level.UNKNOWN:
                    reason = ratios.apart
            sides = [
                m
                for m in measurements
                if (m.metric, m.threads) == (group.metric, group.threads)
                and (m.machine.kind == "host" or m.who == who)
            ]
            doubts = tuple(_doubts(sides, better, ratios))
            found.append(
                Comparison(
                    group=group,
                    unit=sides[0].unit,
                    better=better,
                    who=who,
                    vs_host=ratios and ratios.vs_host,
                    vs_share=ratios and ratios.vs_share if better == "higher" else None,
                    against="share" if shared else "host",
                    target=limit,
                    level=level,
                    reason=reason,
                    remarks=(*_harmless(sides, judged, limit, better), *doubts),
                    doubts=doubts,
                    primary=group in primary,
                )
            )
    return found


def grouped(measurements: Iterable[Measurement]) -> dict[ComparedGroup, Rounds]:
    """Return {group: {round: {who: geometric mean of the round's repeats}}}.

    :param measurements: those of hosts, or those of guests
    """
    measured = list(measurements)
    together: defaultdict[tuple[str, int, int], set[str]] = defaultdict(set)
    for m in measured:
        if m.at_once is None:
            together[m.metric, m.threads, m.round].add(m.who)
    values: dict[ComparedGroup, dict[int, dict[str, list[float]]]] = {}
    for m in measured:
        at_once = m.at_once or len(together[m.metric, m.threads, m.round])
        group = ComparedGroup(m.metric, m.threads, at_once, m.loaded_neighbours)
        rounds = values.setdefault(group, {})
        rounds.setdefault(m.round, {}).setdefault(m.who, []).append(m.value)
    return {
        group: {
            number: {who: typical(runs) for who, runs in of_round.items()}
            for number, of_round in sorted(rounds.items())
        }
        for group, rounds in values.items()
    }


class Ratios(NamedTuple):
    """A VM's ratios.

    :ivar apart: why the ratios have no interval in spite of repeats
    :ivar left_out: number of rounds in which only host or VM was measured
    """

    vs_host: Estimate
    vs_share: Estimate
    apart: str = ""
    left_out: int = 0


def ratios_of(
    own: Mapping[int, float], baseline: Rounds | None, vms: int
) -> Ratios | None:
    """Return the ratios of values to a baseline by round; None without a baseline.

    :param own: {round: value}
    :param vms: number of VMs that share the sum of the baseline's runs
    """
    if not baseline:
        return None
    one = {n: math.fsum(v.values()) / len(v) for n, v in baseline.items()}
    share = {n: math.fsum(v.values()) / vms for n, v in baseline.items()}
    common = sorted(own.keys() & baseline.keys())
    if not common:
        value = typical(own.values())
        return Ratios(
            estimate([value / typical(one.values())]),
            estimate([value / typical(share.values())]),
            "host and VM were never measured in the same round: interleave their runs",
        )
    return Ratios(
        estimate([own[n] / one[n] for n in common]),
        estimate([own[n] / share[n] for n in common]),
        left_out=len(own.keys() ^ baseline.keys()),
    )


def _baseline(
    hosts: Mapping[ComparedGroup, Rounds], group: ComparedGroup
) -> Rounds | None:
    """Return the host's runs, as many at once as VMs, else fewer, else more, if any."""
    fitting = {
        key.at_once: rounds
        for key, rounds in hosts.items()
        if (key.metric, key.threads) == (group.metric, group.threads)
    }
    below = [at_once for at_once in fitting if at_once <= group.at_once]
    return fitting.get(max(below) if below else min(fitting, default=0))


def _target(metric: str, better: Better, target: float, latency: float) -> float:
    if better == "higher":
        return target
    # Less throughput is more time for the same work, but not a longer tail.
    return latency if "latency" in metric else 1 / target


def _doubts(
    sides: Collection[Measurement], better: Better, ratios: Ratios | None
) -> Iterator[str]:
    """Yield what may make a VM look better than it is."""
    yield from _unlike((m.tool, m.machine.kind, m.tool_version) for m in sides)
    baselines = [m.machine for m in sides if m.machine.kind == "host"]
    # One text names the governors of all CPUs.  Mixed governors are no doubt here:
    # CPUs without a VM may save power, and hypervisor.governor judges the VMs' CPUs.
    governors = {m.governor for m in baselines if m.governor}
    alike = {one for one in governors if "performance" not in one.split()}
    if slow := ", ".join(sorted(alike)):
        yield f"the host ran with governor {slow}, which flatters the VM"
    if ratios is None:
        return
    vs_host = ratios.vs_host
    if better == "higher" and vs_host.ratio > 1:
        if any(m.node is None for m in baselines):
            yield (
                "more than the host, whose run was not bound to a NUMA node: repeat "
                "it under numactl --cpunodebind=N --membind=N, one run per node at "
                "once"
            )
        elif (ends := vs_host.interval()) and ends[0] > _TOO_GOOD:
            yield "more than the host, though bound: is it the same machine?"
    if ratios.left_out:
        rounds = number_of(ratios.left_out, "round")
        yield f"{rounds} with only the host or only the VM left out"
    # Percentiles of histograms are often equal.
    if vs_host.spread == 0 and better == "higher":
        yield "the same ratio in every round: were they really repeated?"


def _harmless(
    sides: Collection[Measurement],
    judged: Estimate | None,
    target: float,
    better: Better,
) -> Iterator[str]:
    """Yield what else makes a ratio less sure."""
    # A VM has a kernel of its own, and shows a CPU as its host lets it.
    for name in _FEATURES:
        values = ((m.machine.kind, getattr(m.machine, name)) for m in sides)
        yield from _unlike((name.replace("_", " "), *value) for value in values)
    if judged is None:
        return
    if slow := slow_remark(judged, target, better):
        yield slow
    if judged.drifts:
        yield "the ratio drifts from round to round; its interval is widened for it"


def _unlike(seen: Iterable[tuple[str, Kind, str | None]]) -> Iterator[str]:
    """Yield what host and VM do not have in common, of (name, kind, value)."""
    values: dict[str, dict[Kind, set[str]]] = {}
    for name, kind, value in seen:
        if value is not None:
            values.setdefault(name, {}).setdefault(kind, set()).add(value)
    for name, by_kind in values.items():
        if len(set().union(*by_kind.values())) > 1:
            words = [
                f"{', '.join(sorted(by_kind[kind]))} {where}"
                for kind, where in (("host", "on the host"), ("guest", "in the VM"))
                if kind in by_kind
            ]
            yield f"{name}: {', '.join(words)}"


def _names(rounds: Rounds) -> list[str]:
    return list(dict.fromkeys(who for values in rounds.values() for who in values))


def typical(values: Iterable[float]) -> float:
    """Return the geometric mean of values above 0."""
    found = list(values)
    return math.exp(math.fsum(map(math.log, found)) / len(found))
