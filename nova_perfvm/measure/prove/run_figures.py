# SPDX-License-Identifier: Apache-2.0
"""Compare the figures of a record with the steps of the benchmark run.

A step runs one tool on all targets of a group at once, for the seconds that the
scenario names; a figure belongs to one target, tool and round.  Overlapping steps,
figures without a step and steps without figures show that parts of several runs were
put together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import combinations, pairwise, product
from statistics import fmean
from typing import Any, Final

from nova_perfvm.measure.bench.scenario import Scenario
from nova_perfvm.measure.checks import packets
from nova_perfvm.measure.collect.collected import Collected
from nova_perfvm.measure.samples import Measurement

# Tolerance for the start before a step's end, and for the tool's own time.
_SLACK_S: Final = 0.5
_NETWORK: Final = "network."

Run = Mapping[str, Any]


def contradictions(
    run: Run, scenario: Scenario, figures: Collection[Measurement], host: Collected
) -> Iterator[str]:
    """Yield the contradictions between steps and figures of a run.

    :param host: the host, collected after the run
    """
    drawn = {step.key: step.run.seconds for step in scenario.steps(run["seed"])}
    yield from _out_of_order(run, drawn)
    yield from _times(run, drawn)
    yield from _beside(run, scenario)
    yield from _of_steps(run, scenario, figures)
    yield from _copies(figures)
    yield from _link(figures, host)


def _out_of_order(run: Run, drawn: Mapping[str, int]) -> Iterator[str]:
    """Look whether each session ran the remaining steps in their drawn order."""
    places = {key: place for place, key in enumerate(drawn)}
    begun = list(map(_begun, run["sessions"]))
    seen: set[str] = set()
    before = (0, -1)
    for step in run["steps"]:
        key, at = step["key"], _begun(step)
        place = sum(at >= one for one in begun), places.get(key, -1)
        if key in seen or place <= before:
            yield f"step {key} out of the order that was drawn"
            return
        seen.add(key)
        before = place
    missing = len(drawn.keys() - seen)
    if missing and not run["failures"]:
        yield f"{missing} of {len(drawn)} steps are missing"


def _times(run: Run, drawn: Mapping[str, int]) -> Iterator[str]:
    """Look for steps that ended before their tool's time, or overlapped.

    :param drawn: {key of a step: seconds that its tool runs}
    """
    for step in run["steps"]:
        took_s, least_s = step.get("took_s"), drawn.get(step["key"], 0)
        if took_s is not None and took_s < least_s - _SLACK_S:
            yield f"step {step['key']} took {took_s:.1f} s, of {least_s} s that it runs"
            break
    for one, following in pairwise(run["steps"]):
        ended = _begun(one) + timedelta(seconds=(one.get("took_s") or 0) - _SLACK_S)
        if _begun(following) < ended:
            yield f"step {following['key']} began before {one['key']} ended"
            break


def _begun(part: Mapping[str, Any]) -> datetime:
    """Return when a step, or a session, began."""
    return datetime.fromisoformat(part["started_at"])


def _beside(run: Run, scenario: Scenario) -> Iterator[str]:
    """Look for unmeasured VMs on the host during the host's own runs."""
    vms = sum(target.kind == "guest" for target in scenario.targets)
    for step in run["steps"]:
        for who, seen in step.get("beside", {}).items():
            if seen and seen["vms"] > vms:
                yield (
                    f"{seen['vms']} VMs were beside {who} in step {step['key']}, of "
                    f"which {vms} were measured"
                )
                return


def _of_steps(
    run: Run, scenario: Scenario, figures: Collection[Measurement]
) -> Iterator[str]:
    """Look for a figure that no step measured, a doubled one or a missing one."""
    counted = [step for step in run["steps"] if not step.get("warm_up")]
    rounds = {int(step["key"].partition("/")[0]) for step in counted}
    members = {who: len(of) for of in scenario.groups.values() for who in of}
    kinds = {(m.tool, m.metric, m.threads) for m in figures}
    seen: defaultdict[tuple[str, str, str, int, int], int] = defaultdict(int)
    for m in figures:
        seen[m.who, m.tool, m.metric, m.threads, m.round] += 1
        reason = ""
        if m.round not in rounds or m.who not in members:
            reason = "no step measured it"
        elif (m.at_once or members[m.who]) != members[m.who] or m.loaded_neighbours:
            reason = f"its step measured {members[m.who]} at once, and nobody else"
        elif m.machine.node not in {None, scenario.target(m.who).node}:
            reason = f"of node {m.machine.node}, not of its target's"
        elif m.repeat > 1 or seen[m.who, m.tool, m.metric, m.threads, m.round] > 1:
            reason = "it was measured more than once"
        if reason:
            yield f"{m.metric} of {m.who} in round {m.round}: {reason}"
            return
    if run["failures"]:
        # The failures name the missing figures.
        return
    for who, number, kind in product(members, sorted(rounds), sorted(kinds)):
        if not seen[who, *kind, number]:
            yield f"{kind[1]} of {who} in round {number} is missing"
            return


def _copies(figures: Collection[Measurement]) -> Iterator[str]:
    """Look for pairs of targets with equal figures."""
    values: defaultdict[str, dict[tuple[str, int, int], float]] = defaultdict(dict)
    for m in figures:
        values[m.who][m.metric, m.threads, m.round] = m.value
    for one, other in combinations(sorted(values), 2):
        if values[one] == values[other]:
            yield f"the figures of {other} are those of {one}"


def _link(figures: Collection[Measurement], host: Collected) -> Iterator[str]:
    """Look for network figures of the host above the speed of its links."""
    links = sum(packets.speeds(host).values()) * 1e6
    means: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for m in figures:
        if m.metric.startswith(_NETWORK) and m.unit == "bit/s":
            means[m.metric][m.who].append(m.value if m.machine.kind == "host" else 0)
    for metric, of in means.items():
        whole = sum(map(fmean, of.values()))
        if links and whole > links:
            yield (
                f"{metric}: the host reached {whole / 1e9:.1f} Gbit/s, over links of "
                f"{links / 1e9:g}"
            )
