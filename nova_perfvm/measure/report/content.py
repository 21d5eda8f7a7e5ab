# SPDX-License-Identifier: Apache-2.0
"""What a report shows: comparisons, failures, and what machines were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nova_perfvm.measure import samples
from nova_perfvm.measure.bench.record import json_of
from nova_perfvm.measure.statistics.compare import (
    CannotCompareError,
    Comparison,
    compare,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """What could not be measured."""

    where: str
    who: str
    reason: str
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """All that a report shows.

    :ivar comparisons: empty where nothing could be compared; ``not_compared`` is why
    :ivar machines: of each target its name, hostname, kernel, CPU, governor, tools and
        clock, as it was measured
    """

    files: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    not_compared: str = ""
    failures: tuple[Failure, ...] = ()
    machines: tuple[tuple[str, ...], ...] = ()


def read(files: Sequence[str]) -> Content:
    """Return what files of measurements show.

    :raises PerfVMError: when one cannot be used
    """
    found = samples.load(files)
    runs = [run for file in files if isinstance(run := json_of(file).get("run"), dict)]
    # The last session says how it is now.
    looks = dict(look for run in runs for look in _looks(run))
    comparisons: list[Comparison] = []
    not_compared = ""
    try:
        comparisons = compare(found.measurements)
    except CannotCompareError as exc:
        not_compared = str(exc)
    return Content(
        files=tuple(files),
        comparisons=tuple(comparisons),
        not_compared=not_compared,
        failures=tuple(failure for run in runs for failure in _failures(run)),
        machines=tuple(_machine(who, look) for who, look in looks.items()),
    )


def _looks(run: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the targets of each session."""
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


def _machine(who: str, look: Mapping[str, Any]) -> tuple[str, ...]:
    versions, clock = look.get("versions"), look.get("clock")
    words = "the same"
    if isinstance(clock, dict) and clock.get("uncertainty_s"):
        offset, around = (
            float(clock.get(key) or 0) * 1000 for key in ("offset_s", "uncertainty_s")
        )
        words = f"{offset:+.1f} ms ± {around:.1f}"
    keys = ("hostname", "kernel", "cpu_model", "governor")
    tools = versions.items() if isinstance(versions, dict) else ()
    return (
        who,
        *(str(look.get(key) or "unknown") for key in keys),
        ", ".join(f"{name} {version}" for name, version in tools),
        words,
    )
