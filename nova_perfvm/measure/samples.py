# SPDX-License-Identifier: Apache-2.0
"""The results of benchmarks: measurements, each with its machine, tool and round.

A file of measurements is JSON::

    {"kind": "measurements",
     "schema_version": "1.0",
     "measurements": [
      {"who": "vm1",
       "machine": {"kind": "guest", "kernel": "6.1.0", "cpu_model": "Xeon Gold 6248",
                   "governor": "performance", "node": null},
       "tool": "sysbench", "tool_version": "1.0.20",
       "metric": "cpu.events_per_second", "unit": "1/s", "better": "higher",
       "threads": 4, "round": 1, "repeat": 1, "value": 3663.93}]}

``scale_out`` beside or instead of ``measurements`` has what a growing number of
servers did under load; see :class:`ScaleOut`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from nova_perfvm.documents.document import dump_document, load_document, parse_document
from nova_perfvm.documents.keys import Expected, some
from nova_perfvm.documents.mistakes import DocumentError, Mistake, first
from nova_perfvm.measure.collect.collected import Kind

Better = Literal["higher", "lower"]

Text = Annotated[str, some("text")]
Count = Annotated[int, Expected("a whole number from 1 up", lambda n: n >= 1)]
# A run that failed has no value: it is repeated, or its VM fails.
_ABOVE_0: Final = "a number above 0 (a run that failed has no value: repeat it)"
Value = Annotated[float, Expected(_ABOVE_0, lambda n: n > 0)]
AtLeast0 = Annotated[float, Expected("0 or more", lambda n: n >= 0)]
Node = Annotated[int, Expected("the number of a NUMA node", lambda n: n >= 0)]


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of a measurement; None for unknown attributes.

    :ivar kind: host, or guest for a VM
    :ivar governor: governor of frequency scaling, such as ``performance``
    :ivar node: the NUMA node that CPUs and memory of the run were bound to; None
        without a binding.  A VM's run is bound by the VM's flavor.
    """

    kind: Kind
    kernel: Text | None = None
    cpu_model: Text | None = None
    governor: Text | None = None
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """A figure from a run of a tool.

    :ivar who: name of the VM, of the host, or of one of several runs at once on a host
    :ivar metric: dotted name, such as ``network.bits_per_second`` or
        ``cpu.latency_max_ms``; the VMs of a host share its network and disk
    :ivar better: whether a higher or a lower value is better
    :ivar threads: threads, jobs or connections of the tool
    :ivar round: number of the round; each round measures every machine, and values of
        the same round are compared
    :ivar repeat: number of the run within its round
    :ivar at_once: number of VMs, or of runs on the host, at this time; None for the
        number of values of this metric in the round
    :ivar value: above 0
    :ivar loaded_neighbours: number of other VMs of the host whose CPUs and memory were
        busy, and which were not measured; only in files of earlier versions
    """

    who: Text
    machine: Machine
    tool: Text
    tool_version: Text
    metric: Text
    unit: Text
    better: Better
    threads: Count
    value: Value
    round: Count = 1
    repeat: Count = 1
    at_once: Count | None = None
    loaded_neighbours: Annotated[int, Expected("0 or more", lambda n: n >= 0)] = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """What was served at a time of a run, ``s`` seconds after its start."""

    s: AtLeast0
    per_second: AtLeast0


@dataclass(frozen=True, slots=True)
class Load:
    """The throughput of several servers together.

    :ivar per_second: requests per second over the whole run
    :ivar timeline: requests per second in the course of the run; empty if unknown
    :ivar generator_cpu_percent: CPU use of the machines that make the requests
    """

    servers: Count
    per_second: Value
    generator_cpu_percent: AtLeast0 | None = None
    timeline: tuple[Moment, ...] = ()


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """A service under load, with one server and with more."""

    name: Text
    loads: Annotated[tuple[Load, ...], some("a list that is not empty")]


@dataclass(frozen=True, slots=True)
class Samples:
    """The content of a file of measurements.

    :ivar run: record of the run, see :mod:`nova_perfvm.measure.bench.record`
    """

    measurements: tuple[Measurement, ...] = ()
    scale_out: tuple[ScaleOut, ...] = ()
    run: Annotated[Mapping[str, Any], Expected("what bench run recorded")] = field(
        default_factory=dict, compare=False
    )

    def mistakes(self) -> Iterator[Mistake]:
        """Yield contradictions between figures, or that there are no figures."""
        yield from _contradictions(self.measurements)
        if not self.measurements and not self.scale_out:
            yield Mistake((), "expected measurements, or scale_out")


def dumps(samples: Samples) -> str:
    """Return the JSON of measurements."""
    return dump_document("measurements", samples)


def loads(text: str, source: str = "the file") -> Samples:
    """Return the measurements in a text of JSON.

    :param source: name of the text in errors
    :raises DocumentError: with every mistake of the text
    """
    return parse_document("measurements", Samples, text, source)


def load(path: str) -> Samples:
    """Return the measurements of a file.

    :raises DocumentError: with every mistake of the file
    :raises UnreadableFileError: when the file cannot be read
    """
    return load_document("measurements", Samples, path)


def joined(files: Mapping[str, Samples]) -> Samples:
    """Return the measurements of several files, {name of the file: its samples}.

    :raises DocumentError: with the contradictions between the files
    """
    if len(files) == 1:
        (only,) = files.values()
        return only
    measurements = [m for file in files.values() for m in file.measurements]
    scale_out = [s for file in files.values() for s in file.scale_out]
    whole = Samples(tuple(measurements), tuple(scale_out))
    if mistakes := first(whole.mistakes()):
        raise DocumentError(f"{' + '.join(files)} (counted through)", mistakes)
    return whole


def _contradictions(measurements: Iterable[Measurement]) -> Iterator[Mistake]:
    """List values that are there twice, and metrics that mean two things."""
    seen: dict[tuple[object, ...], int] = {}
    meanings: dict[str, str] = {}
    kinds: dict[str, Kind] = {}
    for index, m in enumerate(measurements):
        here = ("measurements", str(index))
        how = (m.who, m.metric, m.threads, m.at_once, m.loaded_neighbours)
        before = seen.setdefault((*how, m.round, m.repeat), index)
        if before != index:
            run = f"{m.threads} threads, round {m.round}, repeat {m.repeat}"
            reason = f"is of the same run ({m.who}, {m.metric}, {run})"
            yield Mistake(here, f"measurement {before} {reason}: remove one of them")
        meaning = f"in {m.unit} with {m.better} values better"
        if meaning != (other := meanings.setdefault(m.metric, meaning)):
            reason = f"{m.metric} is {meaning} here, and {other} before"
            yield Mistake(here, f"{reason}: use one for all")
        kind = m.machine.kind
        if kind != (first := kinds.setdefault(m.who, kind)):
            reason = f"{m.who} is a {kind} here and a {first} before"
            place = (*here, "machine", "kind")
            yield Mistake(place, f"{reason}: give each its own name")
