# SPDX-License-Identifier: Apache-2.0
"""What a run of benchmarks leaves: measurements, each with all that it depends on.

A file of measurements is JSON::

    {"schema_version": "1.0",
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

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from nova_perfvm import filekinds, textfile
from nova_perfvm.exceptions import FileMistakesError, Problem, UnreadableFileError
from nova_perfvm.measure.collected import Kind
from nova_perfvm.policy.schema import form_problems

SCHEMA_VERSION: Final = "1.0"
Better = Literal["higher", "lower"]

# Of a fleet over days, with figures for every second of it.
MOST_BYTES: Final = 256 * 1024 * 1024
_MOST_PROBLEMS: Final = 20


class SamplesError(FileMistakesError):
    """A file of measurements that cannot be used; ``problems`` has its mistakes."""

    title = "{source} holds no measurements that can be used: {count}"


@dataclass(frozen=True, slots=True)
class Machine:
    """What a measurement was taken on; None is what is not known.

    :ivar kind: whether it is the host or one of its VMs
    :ivar governor: of frequency scaling, such as ``performance``
    :ivar node: the NUMA node that CPUs and memory of the run were bound to; None
        if they were not.  A VM's run is bound by its flavor and needs none.
    """

    kind: Kind
    kernel: str | None = None
    cpu_model: str | None = None
    governor: str | None = None
    node: int | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure of one run of a tool.

    :ivar who: the VM's name; the host's, or a name for each run of several that
        the host does at once
    :ivar metric: dotted, what is measured and how, such as ``network.bits_per_second``
        or ``cpu.latency_max_ms``; network and disk are what the VMs of a host share
    :ivar better: whether a higher or a lower value is better
    :ivar threads: threads, jobs or connections of the tool
    :ivar round: rounds follow each other, and in each of them everyone is measured;
        values are compared within a round
    :ivar repeat: number of the run within its round
    :ivar at_once: how many of its kind, VMs or runs on the host, ran at this time;
        None for as many as have values of this metric in the round
    :ivar value: above 0
    """

    who: str
    machine: Machine
    tool: str
    tool_version: str
    metric: str
    unit: str
    better: Better
    threads: int
    value: float
    round: int = 1
    repeat: int = 1
    at_once: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """What was served at a time of a run, ``s`` seconds after its start."""

    s: float
    per_second: float


@dataclass(frozen=True, slots=True)
class Load:
    """What so many servers served together.

    :ivar per_second: requests per second over the whole run
    :ivar timeline: the same over its course, where it is known
    :ivar generator_cpu_percent: how busy the machines were that made the requests
    """

    servers: int
    per_second: float
    generator_cpu_percent: float | None = None
    timeline: tuple[Moment, ...] = ()


@dataclass(frozen=True, slots=True)
class ScaleOut:
    """A service under load, with one server and with more."""

    name: str
    loads: tuple[Load, ...]


@dataclass(frozen=True, slots=True)
class Samples:
    """All that a file has."""

    measurements: tuple[Measurement, ...] = ()
    scale_out: tuple[ScaleOut, ...] = ()
    schema_version: str = field(default=SCHEMA_VERSION)


def _object(properties: dict[str, Any], *optional: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": "a mapping",
        "properties": properties,
        "required": [key for key in properties if key not in optional],
        "additionalProperties": False,
    }


def _list(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    words = "a list" if not least else "a list that is not empty"
    return {"type": "array", "description": words, "minItems": least, "items": items}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    words = f"{schema['description']}, or null"
    return {**schema, "type": [schema["type"], "null"], "description": words}


_TEXT: Final = {"type": "string", "minLength": 1, "description": "text"}
_COUNT: Final = {
    "type": "integer",
    "minimum": 1,
    "description": "a whole number from 1 up",
}
_NODE: Final = {
    "type": "integer",
    "minimum": 0,
    "description": "the number of a NUMA node",
}
# A run that failed has no value: it is repeated, or its VM fails.
_VALUE: Final = {
    "type": "number",
    "exclusiveMinimum": 0,
    "description": "a number above 0 (a run that failed has no value: repeat it)",
}
_AT_LEAST_0: Final = {"type": "number", "minimum": 0, "description": "0 or more"}
_MACHINE: Final = _object(
    {
        "kind": {"enum": ["host", "guest"], "description": "host or guest"},
        "kernel": _or_null(_TEXT),
        "cpu_model": _or_null(_TEXT),
        "governor": _or_null(_TEXT),
        "node": _or_null(_NODE),
    },
    *("kernel", "cpu_model", "governor", "node"),
)
_MEASUREMENT: Final = _object(
    {
        "who": _TEXT,
        "machine": _MACHINE,
        "tool": _TEXT,
        "tool_version": _TEXT,
        "metric": _TEXT,
        "unit": _TEXT,
        "better": {"enum": ["higher", "lower"], "description": "higher or lower"},
        "threads": _COUNT,
        "value": _VALUE,
        "round": _COUNT,
        "repeat": _COUNT,
        "at_once": _or_null(_COUNT),
    },
    *("round", "repeat", "at_once"),
)
_LOAD: Final = _object(
    {
        "servers": _COUNT,
        "per_second": _VALUE,
        "generator_cpu_percent": _or_null(_AT_LEAST_0),
        "timeline": _list(_object({"s": _AT_LEAST_0, "per_second": _AT_LEAST_0})),
    },
    *("generator_cpu_percent", "timeline"),
)
SCHEMA: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "measurements",
    **_object(
        {
            "schema_version": {
                "const": SCHEMA_VERSION,
                "description": f"{SCHEMA_VERSION!r}",
            },
            "measurements": _list(_MEASUREMENT),
            "scale_out": _list(_object({"name": _TEXT, "loads": _list(_LOAD, 1)})),
            # How they were made: bench/record.py knows it.
            "run": {"type": "object", "description": "what bench run recorded"},
        },
        *("measurements", "scale_out", "run"),
    ),
}


def dumps(samples: Samples) -> str:
    """Return the JSON of measurements."""
    return json.dumps(asdict(samples), indent=1, allow_nan=False) + "\n"


def loads(text: str, source: str = "the file") -> Samples:
    """Return what JSON says was measured.

    :param source: what to call the text in errors
    :raises SamplesError: with the mistakes
    """
    return filekinds.expecting(_samples, text, source, filekinds.SAMPLES)


def _samples(text: str, source: str) -> Samples:
    try:
        document = json.loads(text, parse_constant=_no_number)
    except ValueError as exc:
        raise SamplesError(source, [Problem((), f"no JSON: {exc}")]) from None
    except RecursionError:
        raise SamplesError(source, [Problem((), "nested too deeply")]) from None
    problems = form_problems(dict(SCHEMA), document)
    if not problems:
        problems = _too_large(document)
    if not problems:
        found = _built(document)
        problems = _contradictions(found.measurements)
        if not found.measurements and not found.scale_out:
            problems = [Problem((), "expected measurements, or scale_out")]
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        if more > 0:
            problems[_MOST_PROBLEMS:] = [Problem((), f"and {more} mistakes more")]
        raise SamplesError(source, problems)
    return found


def load(paths: Iterable[str]) -> Samples:
    """Return what several files have together, such as the host's and the VMs'.

    :raises SamplesError: with the mistakes of the first file that has some, or of
        all together
    :raises UnreadableFileError: when a file cannot be read
    """
    names = list(dict.fromkeys(paths))
    files = [_loaded(name) for name in names]
    if len(files) == 1:
        return files[0]
    whole = Samples(
        measurements=tuple(m for file in files for m in file.measurements),
        scale_out=tuple(s for file in files for s in file.scale_out),
    )
    problems = _contradictions(whole.measurements)
    if problems:
        raise SamplesError(f"{' + '.join(names)} (counted through)", problems)
    return whole


def _loaded(path: str) -> Samples:
    try:
        return loads(textfile.read(path, MOST_BYTES), path)
    except UnreadableFileError as exc:
        raise SamplesError(path, [exc.as_problem()]) from None


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def _too_large(document: Any, path: tuple[str, ...] = ()) -> list[Problem]:
    """Find numbers such as 1e999, which JSON's reader takes for infinity."""
    if isinstance(document, dict):
        items = [(str(key), value) for key, value in document.items()]
    elif isinstance(document, list):
        items = [(str(key), value) for key, value in enumerate(document)]
    elif isinstance(document, float) and not math.isfinite(document):
        return [Problem(path, "the number is too large")]
    else:
        return []
    return [p for key, value in items for p in _too_large(value, (*path, key))]


def _built(document: dict[str, Any]) -> Samples:
    return Samples(
        measurements=tuple(
            Measurement(**{**given, "machine": Machine(**given["machine"])})
            for given in document.get("measurements", ())
        ),
        scale_out=tuple(
            ScaleOut(given["name"], tuple(map(_load, given["loads"])))
            for given in document.get("scale_out", ())
        ),
    )


def _load(given: dict[str, Any]) -> Load:
    timeline = tuple(Moment(**moment) for moment in given.get("timeline", ()))
    return Load(**{**given, "timeline": timeline})


def _contradictions(measurements: Iterable[Measurement]) -> list[Problem]:
    """List values that are there twice, and metrics that mean two things."""
    problems: list[Problem] = []
    seen: dict[tuple[object, ...], int] = {}
    meaning: dict[str, tuple[str, str]] = {}
    kinds: dict[str, Kind] = {}
    for index, m in enumerate(measurements):
        here = ("measurements", str(index))
        key = (m.who, m.metric, m.threads, m.at_once, m.round, m.repeat)
        if key in seen:
            problems.append(
                Problem(
                    here,
                    f"measurement {seen[key]} is of the same run ({m.who}, {m.metric}, "
                    f"{m.threads} threads, round {m.round}, repeat {m.repeat}): "
                    "remove one of them",
                )
            )
        seen.setdefault(key, index)
        unit, better = meaning.setdefault(m.metric, (m.unit, m.better))
        if (unit, better) != (m.unit, m.better):
            problems.append(
                Problem(
                    here,
                    f"{m.metric} is in {m.unit} with {m.better} values better here, "
                    f"and in {unit} with {better} ones before: use one for all",
                )
            )
        if kinds.setdefault(m.who, m.machine.kind) != m.machine.kind:
            problems.append(
                Problem(
                    (*here, "machine", "kind"),
                    f"{m.who} is a {m.machine.kind} here and a {kinds[m.who]} before: "
                    "give each its own name",
                )
            )
    return problems
