# SPDX-License-Identifier: Apache-2.0
"""What a report shows: verdicts, figures, failures, and how machines are set up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench.record import json_of
from nova_perfvm.measure.collect import reading
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import domains, interrupts, topology
from nova_perfvm.measure.samples import Measurement
from nova_perfvm.measure.statistics.compare import (
    CannotCompareError,
    Comparison,
    compare,
)
from nova_perfvm.measure.statistics.verdict import Verdict

# More rows could not be told apart.
_MOST_VECTORS: Final = 64


@dataclass(frozen=True, slots=True)
class Failure:
    """What could not be measured."""

    where: str
    who: str
    reason: str
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class MachineRow:
    """What a target was when it measured."""

    who: str
    hostname: str
    kernel: str
    cpu_model: str
    governor: str
    versions: str
    clock: str


@dataclass(frozen=True, slots=True)
class Spread:
    """How often the interrupts of a machine fired, by vector and CPU.

    :ivar fired: {(vector, CPU): times}
    :ivar left_out: vectors that fired less than those that are shown
    """

    who: str
    source: str
    fired: Mapping[tuple[str, int], int]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Pin:
    """A CPU that a thread of a VM may use.

    :ivar what: vCPU, emulator or I/O thread
    :ivar number: of the vCPU or I/O thread
    """

    vm: str
    what: str
    number: int
    cpu: int


@dataclass(frozen=True, slots=True)
class NodePins:
    """One NUMA node of a host, and who is pinned to its CPUs."""

    who: str
    node: int
    cpus: tuple[int, ...]
    pins: tuple[Pin, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """All that a report shows.

    :ivar comparisons: empty where nothing could be compared; ``not_compared`` is why
    :ivar not_shown: what was to be seen on machines, and why it is not
    """

    files: tuple[str, ...]
    measurements: tuple[Measurement, ...]
    comparisons: tuple[Comparison, ...]
    not_compared: str = ""
    failures: tuple[Failure, ...] = ()
    machines: tuple[MachineRow, ...] = ()
    spreads: tuple[Spread, ...] = ()
    nodes: tuple[NodePins, ...] = ()
    not_shown: tuple[str, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """Return how many comparisons have a verdict."""
        return sum(row.verdict is verdict for row in self.comparisons)


def read(files: Sequence[str], collected: Sequence[str] = ()) -> Content:
    """Return what files of measurements, and of what was collected, show.

    :raises PerfVMError: when one cannot be used
    """
    found = samples.load(files)
    runs = [run for file in files if isinstance(run := json_of(file).get("run"), dict)]
    looks = [look for run in runs for look in _looks(run)]
    not_shown: list[str] = []
    machines = (
        {_name(one): one for one in map(reading.read, collected)}
        if collected
        else _recorded(looks, not_shown)
    )
    spreads, nodes = _shown(machines, not_shown)
    comparisons: list[Comparison] = []
    not_compared = ""
    try:
        comparisons = compare(found.measurements)
    except CannotCompareError as exc:
        not_compared = str(exc)
    return Content(
        files=tuple(files),
        measurements=found.measurements,
        comparisons=tuple(comparisons),
        not_compared=not_compared,
        failures=tuple(failure for run in runs for failure in _failures(run)),
        machines=tuple(_machine(who, look) for who, look in dict(looks).items()),
        spreads=tuple(spreads),
        nodes=tuple(nodes),
        not_shown=tuple(not_shown),
    )


def _name(collected: Collected) -> str:
    return f"{collected.kind} {collected.hostname}"


def _recorded(
    looks: Iterable[tuple[str, Mapping[str, Any]]], not_shown: list[str]
) -> dict[str, Collected]:
    """Return what was collected on targets when they measured."""
    machines: dict[str, Collected] = {}
    for who, look in looks:
        if not isinstance(look.get("collected"), dict):
            continue
        try:
            machines[who] = reading.loads(json.dumps(look["collected"]), who)
        except PerfVMError as exc:
            not_shown.append(str(exc))
    return machines


def _shown(
    machines: Mapping[str, Collected], not_shown: list[str]
) -> tuple[list[Spread], list[NodePins]]:
    spreads: list[Spread] = []
    nodes: list[NodePins] = []
    for who, collected in machines.items():
        try:
            spread = _spread(who, collected)
            if any(spread.fired.values()):
                spreads.append(spread)
            else:
                not_shown.append(
                    f"{who}: interrupts: none fired while it was looked at"
                )
        except NotReadError as exc:
            not_shown.append(f"{who}: interrupts: {exc}")
        try:
            if collected.kind == "host":
                nodes += _nodes(who, collected)
        except NotReadError as exc:
            not_shown.append(f"{who}: pins: {exc}")
    return spreads, nodes


def summary(content: Content) -> str:
    """Return the counts of verdicts in one line."""
    if content.not_compared:
        return f"nothing compared: {content.not_compared}"
    return ", ".join(f"{content.count(one)} {one.value}" for one in Verdict)


def _looks(run: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the targets of each session; the last one says how it is now."""
    for session in _list(run.get("sessions")):
        targets = session.get("targets")
        for who, look in targets.items() if isinstance(targets, dict) else ():
            if isinstance(look, dict):
                yield str(who), look


def _failures(run: Mapping[str, Any]) -> Iterator[Failure]:
    for one in _list(run.get("failures")):
        texts = (str(one.get(key, "")) for key in ("where", "who", "reason", "stderr"))
        yield Failure(*texts)


def _list(found: Any) -> Iterator[Mapping[str, Any]]:
    for one in found if isinstance(found, list) else ():
        if isinstance(one, dict):
            yield one


def _machine(who: str, look: Mapping[str, Any]) -> MachineRow:
    versions, clock = look.get("versions"), look.get("clock")
    words = ""
    if isinstance(clock, dict) and clock.get("uncertainty_s"):
        offset, around = (
            float(clock.get(key) or 0) * 1000 for key in ("offset_s", "uncertainty_s")
        )
        words = f"{offset:+.1f} ms ± {around:.1f}"
    hostname, kernel, cpu_model, governor = (
        str(look.get(key) or "unknown")
        for key in ("hostname", "kernel", "cpu_model", "governor")
    )
    tools = versions.items() if isinstance(versions, dict) else ()
    return MachineRow(
        who=who,
        hostname=hostname,
        kernel=kernel,
        cpu_model=cpu_model,
        governor=governor,
        versions=", ".join(f"{name} {version}" for name, version in tools),
        clock=words or "the same",
    )


def _spread(who: str, collected: Collected) -> Spread:
    found = interrupts.read(collected)
    totals: Counter[str] = Counter()
    fired: Counter[tuple[str, int]] = Counter()
    for vector in found.vectors:
        name = ", ".join(vector.names) or f"IRQ {vector.irq}"
        totals[name] += vector.total
        fired.update({(name, cpu): times for cpu, times in vector.counts.items()})
    # Queues that are idle show what is wrong as well as the busy one does.
    busiest = {name for name, _total in totals.most_common(_MOST_VECTORS)}
    shown = [name for name in totals if name in busiest]
    return Spread(
        who,
        found.source,
        {(name, cpu): fired[name, cpu] for name in shown for cpu in found.cpus},
        len(totals) - len(shown),
    )


def _nodes(who: str, collected: Collected) -> list[NodePins]:
    pins = [
        pin
        for uuid in domains.uuids(collected)
        for pin in _pins(domains.read(collected, uuid))
    ]
    return [
        NodePins(
            who,
            node.number,
            tuple(sorted(node.cpus)),
            tuple(pin for pin in pins if pin.cpu in node.cpus),
        )
        for node in topology.nodes(collected)
    ]


def _pins(domain: domains.Domain) -> Iterator[Pin]:
    name = domain.nova.name if domain.nova and domain.nova.name else domain.name

    def of(what: str, number: int, cpus: Iterable[int]) -> Iterator[Pin]:
        return (Pin(name, what, number, cpu) for cpu in sorted(cpus))

    for vcpu, cpus in domain.vcpupins.items():
        yield from of("vCPU", vcpu, cpus)
    yield from of("emulator", 0, domain.emulatorpin or ())
    for number, cpus in domain.iothreadpins.items():
        yield from of("I/O thread", number, cpus)
