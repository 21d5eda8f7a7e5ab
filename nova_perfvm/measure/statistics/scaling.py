# SPDX-License-Identifier: Apache-2.0
"""Whether more does more: VMs at once on a host, servers behind a service.

With N VMs of which each has the Nth part of a host, each should do X(1) / N and
all together X(1) (ETRI).  With N servers a service should do N times as much as
with one, and keep doing it (RPS).
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.samples import Load, Measurement, Moment, Samples, ScaleOut
from nova_perfvm.measure.statistics.compare import TARGET, Rounds, grouped
from nova_perfvm.measure.statistics.intervals import Estimate, estimate
from nova_perfvm.measure.statistics.verdict import Verdict, judge
from nova_perfvm.printable import number_of

# What follows are assumptions of ours, each far from what it has to find: RPS's
# service fell to a half, its generator was at 90 %.

# A steady window: its values are so near to their median...
_NEAR: Final = 0.10
# ...and it has so many, and lasts for such a part of the run.
_LEAST_MOMENTS: Final = 5
_LEAST_PART: Final = 0.2
# A fall from the peak that is no noise of a run.
MOST_DECAY: Final = 0.10
# A generator that is busier may be what is measured.
MOST_GENERATOR_CPU: Final = 80.0
# Beyond, another CPU or server gives less than this part of what the first gave.
_FLAT: Final = 0.10


class CannotScaleError(PerfVMError):
    """Measurements of one number of VMs or servers only."""


@dataclass(frozen=True, slots=True)
class AtOnce:
    """What VMs do together.

    :ivar vms: how many, N
    :ivar total: sum X(N), typical of the rounds
    :ivar alone_threads: threads of the run that X(1) is of: N times those of each
        VM where there is such a run, else the same
    :ivar of_alone: sum X(N) / X(1); None where nobody ran alone
    :ivar least_share: what the slowest VM did of X(1) / N
    """

    metric: str
    unit: str
    threads: int
    vms: int
    total: float
    alone_threads: int | None = None
    of_alone: Estimate | None = None
    least_share: float | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """Where a curve stops rising.

    :ivar peak: where it is highest
    :ivar flat_from: from where on more gives next to nothing, None for nowhere
    :ivar falls_from: the peak, if more then does less than 90 % of it
    """

    peak: float
    flat_from: float | None
    falls_from: float | None


@dataclass(frozen=True, slots=True)
class ScalingFinding:
    """One judgement.

    :ivar name: the metric and the threads of each VM; the service
    :ivar number: of VMs or servers
    :ivar what: ``of alone`` (sum X(N) / X(1)) or ``of the peak`` of VMs;
        ``generator``, ``linearity`` or ``decay`` of services
    """

    name: str
    number: int
    what: str
    observed: float
    limit: float
    verdict: Verdict
    reason: str = ""


def judge_all(samples: Samples, target: float = TARGET) -> list[ScalingFinding]:
    """Judge all that there is.

    :param target: the least part of what is expected that passes
    :raises CannotScaleError: when there is nothing to judge
    """
    found = _judge_at_once(at_once(samples.measurements), target)
    for service in samples.scale_out:
        found += judge_scale_out(service, target)
    if not found:
        raise CannotScaleError(
            "nothing to judge: expected the same metric of one VM alone and of several "
            "at once (at_once), or scale_out with two numbers of servers"
        )
    return found


def at_once(measurements: Collection[Measurement]) -> list[AtOnce]:
    """Return what VMs do together in each metric where more is better."""
    guests = [
        m
        for m in measurements
        if (m.machine.kind, m.better, m.loaded_neighbours) == ("guest", "higher", 0)
    ]
    groups = grouped(guests)
    found = []
    for group, rounds in groups.items():
        totals = {number: sum(values.values()) for number, values in rounds.items()}
        unit = next(m.unit for m in guests if m.metric == group.metric)
        whole = estimate(list(totals.values())).ratio
        row = AtOnce(group.metric, unit, group.threads, group.at_once, whole)
        for threads in (group.threads * group.at_once, group.threads):
            alone = groups.get(group._replace(threads=threads, at_once=1))
            if alone is not None:
                row = _against(row, threads, rounds, alone)
                break
        found.append(row)
    return sorted(found, key=lambda row: (row.metric, row.threads, row.vms))


def shape(points: Sequence[tuple[float, float]]) -> Shape:
    """Return the shape of a curve.

    :param points: (threads, cores, VMs or servers; throughput), two or more
    """
    ordered = sorted(points)
    peak, highest = max(ordered, key=lambda point: point[1])
    steps = [
        (before[0], (after[1] - before[1]) / (after[0] - before[0]))
        for before, after in itertools.pairwise(ordered)
    ]
    first_gain = ordered[0][1] / ordered[0][0]
    flat_from = None
    # From the end, as a single step may be flat by noise.
    for start, gain in reversed(steps):
        if gain >= _FLAT * first_gain:
            break
        flat_from = start
    falls = ordered[-1][1] < (1 - MOST_DECAY) * highest
    return Shape(peak, flat_from, peak if falls else None)


def judge_scale_out(found: ScaleOut, target: float = TARGET) -> list[ScalingFinding]:
    """Judge a service: the generator first, then linearity, then decay.

    :param target: the least part of N times one server's throughput that passes
    """
    ordered = sorted(found.loads, key=lambda load: load.servers)
    smallest = ordered[0]
    findings: list[ScalingFinding] = []
    for load in ordered:
        if load.generator_cpu_percent is not None:
            findings.append(_generator(found.name, load, load.generator_cpu_percent))
        if load is not smallest:
            each, one = (_served(of) / of.servers for of in (load, smallest))
            findings.append(_linearity(found.name, load, each / one, target))
        if load.timeline:
            findings.append(_decay(found.name, load))
    return findings


def steady_window(timeline: Sequence[Moment]) -> Sequence[Moment]:
    """Return the longest end of a run in which the values keep near their median.

    Empty where there is none that is long enough.
    """
    ordered = sorted(timeline, key=lambda moment: moment.s)
    for start in range(len(ordered) - _LEAST_MOMENTS + 1):
        window = ordered[start:]
        whole = ordered[-1].s - ordered[0].s
        if window[-1].s - window[0].s < _LEAST_PART * whole:
            break
        median = statistics.median(moment.per_second for moment in window)
        if all(abs(m.per_second - median) <= _NEAR * median for m in window):
            return window
    return ()


def _judge_at_once(rows: Sequence[AtOnce], target: float) -> list[ScalingFinding]:
    findings = []
    curves: dict[str, list[AtOnce]] = {}
    for row in rows:
        curves.setdefault(row.metric, []).append(row)
        if row.of_alone is None or row.vms == 1:
            continue
        judged = judge(row.of_alone, target, "higher")
        findings.append(
            ScalingFinding(
                f"{row.metric}, {number_of(row.threads, 'thread')} each",
                row.vms,
                "of alone",
                row.of_alone.ratio,
                target,
                *judged,
            )
        )
    for metric, of_metric in curves.items():
        # VMs that divide the host among themselves have fewer threads each.
        best: dict[int, float] = {}
        for row in of_metric:
            best[row.vms] = max(row.total, best.get(row.vms, 0.0))
        if len(best) > 1:
            findings.append(_of_the_peak(metric, best))
    return findings


def _of_the_peak(metric: str, totals: dict[int, float]) -> ScalingFinding:
    found = shape([(float(vms), total) for vms, total in totals.items()])
    most = max(totals)
    reason = ""
    if found.falls_from is not None:
        reason = f"{most} VMs do less together than {found.falls_from:g}"
    return ScalingFinding(
        metric,
        most,
        "of the peak",
        totals[most] / max(totals.values()),
        1 - MOST_DECAY,
        Verdict.FAIL if reason else Verdict.PASS,
        reason,
    )


def _against(row: AtOnce, threads: int, rounds: Rounds, alone: Rounds) -> AtOnce:
    """Add what one VM did alone; where several did, on average."""
    one = {n: statistics.fmean(values.values()) for n, values in alone.items()}
    totals = {n: sum(values.values()) for n, values in rounds.items()}
    common = sorted(one.keys() & totals.keys())
    single = estimate(list(one.values())).ratio
    of_alone = estimate(
        [totals[n] / one[n] for n in common] if common else [row.total / single]
    )
    each: dict[str, list[float]] = {}
    for values in rounds.values():
        for who, value in values.items():
            each.setdefault(who, []).append(value)
    slowest = min(estimate(values).ratio for values in each.values())
    return replace(
        row,
        alone_threads=threads,
        of_alone=of_alone,
        least_share=slowest / (single / row.vms),
    )


def _served(load: Load) -> float:
    """Return what a load was served, in its steady window if it has one."""
    window = steady_window(load.timeline)
    if not window:
        return load.per_second
    return statistics.fmean(moment.per_second for moment in window)


def _generator(name: str, load: Load, busy: float) -> ScalingFinding:
    saturated = _saturated(load)
    return ScalingFinding(
        name,
        load.servers,
        "generator",
        busy,
        MOST_GENERATOR_CPU,
        Verdict.FAIL if saturated else Verdict.PASS,
        f"the load generator is at {busy:g} % CPU: add generators, measure again"
        if saturated
        else "",
    )


def _linearity(
    name: str, load: Load, linearity: float, target: float
) -> ScalingFinding:
    verdict, reason = Verdict.PASS, ""
    if linearity < target:
        verdict = Verdict.FAIL
        reason = f"{load.servers} servers do {linearity:.3g} of as many times one's"
        if _saturated(load):
            verdict = Verdict.INCONCLUSIVE
            reason += ", but the load generator was saturated: it may be the limit"
    elif load.timeline and not steady_window(load.timeline):
        verdict = Verdict.INCONCLUSIVE
        reason = "no steady window in the run: measure for longer"
    return ScalingFinding(
        name, load.servers, "linearity", linearity, target, verdict, reason
    )


def _decay(name: str, load: Load) -> ScalingFinding:
    values = [moment.per_second for moment in load.timeline]
    # A moment's peak may be one of the clock.
    peak = max(
        statistics.median(values[max(0, at - 1) : at + 2]) for at in range(len(values))
    )
    decay = 1 - _served(load) / peak
    failed = decay > MOST_DECAY
    return ScalingFinding(
        name,
        load.servers,
        "decay",
        decay,
        MOST_DECAY,
        Verdict.FAIL if failed else Verdict.PASS,
        f"fell from {peak:.6g} to {_served(load):.6g} a second" if failed else "",
    )


def _saturated(load: Load) -> bool:
    busy = load.generator_cpu_percent
    return busy is not None and busy > MOST_GENERATOR_CPU
