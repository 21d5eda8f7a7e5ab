# SPDX-License-Identifier: Apache-2.0
"""Whether more does more: VMs at once on a host, servers behind a service.

With N VMs of which each has the Nth part of a host, each should do X(1) / N and
all together X(1) (ETRI).  With N servers a service should do N times as much as
with one, and keep doing it (RPS).
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from nova_perfvm.findings import Level
from nova_perfvm.measure.samples import Measurement, Moment, Samples, ScaleOut
from nova_perfvm.measure.statistics.compare import TARGET, grouped, ratios_of, typical
from nova_perfvm.measure.statistics.verdict import judge
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
# A busier load generator may be the bottleneck instead of the service.
MOST_GENERATOR_CPU: Final = 80.0


class ScalingFinding(NamedTuple):
    """One judgement.

    :ivar name: the metric and the threads of each VM; the service
    :ivar number: number of VMs or servers
    :ivar what: ``of alone`` (sum X(N) / X(1)) or ``of the peak`` of VMs;
        ``generator``, ``linearity`` or ``decay`` of services
    :ivar reason: cause of a failure or warning; empty for neither
    :ivar bad: level of the finding if it has a reason
    """

    name: str
    number: int
    what: str
    observed: float
    limit: float
    reason: str = ""
    bad: Level = Level.FAILURE

    @property
    def level(self) -> Level:
        """OK without a reason."""
        return self.bad if self.reason else Level.OK


def judge_all(samples: Samples, target: float = TARGET) -> list[ScalingFinding]:
    """Judge VMs at once, and the services of a file; empty if it has neither.

    :param target: the least part of the expected throughput that passes
    """
    found = list(judge_vms(samples.measurements, target))
    for service in samples.scale_out:
        found += judge_service(service, target)
    return found


def judge_vms(
    measurements: Iterable[Measurement], target: float = TARGET
) -> Iterator[ScalingFinding]:
    """Judge what VMs do together, in each metric where more is better.

    X(1) is of a VM alone with N times the threads, if there is one, else with as many.
    """
    groups = grouped(
        m
        for m in measurements
        if (m.machine.kind, m.better, m.loaded_neighbours) == ("guest", "higher", 0)
    )
    # {metric: {N: sum X(N) of the best number of threads}}.
    totals: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for group, rounds in sorted(groups.items()):
        vms, best = group.at_once, totals[group.metric]
        sums = {number: sum(values.values()) for number, values in rounds.items()}
        best[vms] = max(typical(sums.values()), best.get(vms, 0.0))
        alone = group._replace(at_once=1)
        whole = alone._replace(threads=group.threads * vms)
        of_alone = ratios_of(sums, groups.get(whole) or groups.get(alone), 1)
        if of_alone and vms > 1:
            name = f"{group.metric}, {number_of(group.threads, 'thread')} each"
            ratio = of_alone.vs_host
            level, reason = judge(ratio, target, "higher")
            row = (name, vms, "of alone", ratio.ratio, target)
            yield ScalingFinding(*row, reason, level)
    for metric, best in totals.items():
        most, peak = max(best), max(best, key=lambda vms: best[vms])
        part, least = best[most] / best[peak], 1 - MOST_DECAY
        if len(best) > 1:
            reason = f"{most} VMs do less together than {peak}" if part < least else ""
            yield ScalingFinding(metric, most, "of the peak", part, least, reason)


def judge_service(found: ScaleOut, target: float = TARGET) -> Iterator[ScalingFinding]:
    """Judge a service: the generator first, then linearity, then decay.

    :param target: the least part of N times one server's throughput that passes
    """
    one = 0.0
    for load in sorted(found.loads, key=lambda load: load.servers):
        judged = partial(ScalingFinding, found.name, load.servers)
        served, busy = load.per_second, load.generator_cpu_percent
        if window := steady_window(load.timeline):
            served = statistics.fmean(moment.per_second for moment in window)
        saturated = busy is not None and busy > MOST_GENERATOR_CPU
        if busy is not None:
            told = f"the load generator is at {busy:g} % CPU: add some, and repeat"
            reason = told if saturated else ""
            yield judged("generator", busy, MOST_GENERATOR_CPU, reason)
        if one:
            linearity = served / load.servers / one
            reason, level = "", Level.UNKNOWN
            if linearity < target:
                reason = f"each of {load.servers} does {linearity:.3g} of one alone"
                level = Level.UNKNOWN if saturated else Level.FAILURE
                but = ", but the load generator was saturated: it may be the limit"
                reason += but if saturated else ""
            elif load.timeline and not window:
                reason = "no steady window in the run: measure for longer"
            yield judged("linearity", linearity, target, reason, level)
        one = one or served / load.servers
        if load.timeline:
            ordered = sorted(load.timeline, key=lambda moment: moment.s)
            values = [moment.per_second for moment in ordered]
            # A moment's peak may be one of the clock.
            around = (values[max(0, at - 1) : at + 2] for at in range(len(values)))
            peak = max(map(statistics.median, around))
            if not peak:
                # It served in bursts of a moment: there is nothing to fall from.
                continue
            decay = 1 - served / peak
            fell = f"fell from {peak:.6g} to {served:.6g} a second"
            reason = fell if decay > MOST_DECAY else ""
            yield judged("decay", decay, MOST_DECAY, reason)


def steady_window(timeline: Sequence[Moment]) -> Sequence[Moment]:
    """Return the longest end of a run in which the values keep near their median.

    Empty if no such end is long enough.
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
