# SPDX-License-Identifier: Apache-2.0
"""What a report shows: comparisons, failures, and what machines were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm.measure import samples
from nova_perfvm.measure.bench.record import json_of, reading_run
from nova_perfvm.measure.statistics.compare import (
    CannotCompareError,
    Comparison,
    compare,
)

_FEATURES: Final = ("hostname", "kernel", "cpu_model", "governor")


@dataclass(frozen=True, slots=True)
class Content:
    """All that a report shows.

    :ivar comparisons: empty where nothing could be compared; ``not_compared`` is why
    :ivar failures: (where, who, why, what the tool printed) of what was not measured
    :ivar machines: of each target its name, hostname, kernel, CPU, governor, tools and
        clock, as it was measured
    """

    files: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    not_compared: str = ""
    failures: tuple[tuple[str, ...], ...] = ()
    machines: tuple[tuple[str, ...], ...] = ()


def read(files: Sequence[str]) -> Content:
    """Return what files of measurements show.

    :raises PerfVMError: when one cannot be used
    """
    found = samples.load(files)
    comparisons: list[Comparison] = []
    not_compared = ""
    try:
        comparisons = compare(found.measurements)
    except CannotCompareError as exc:
        not_compared = str(exc)
    # The last session says how it is now.
    machines: dict[str, tuple[str, ...]] = {}
    failures: list[tuple[str, ...]] = []
    for file in files:
        run = json_of(file).get("run", {})
        with reading_run(file):
            for session in run.get("sessions", ()):
                for who, look in session["targets"].items():
                    machines[who] = _machine(who, look)
            for one in run.get("failures", ()):
                told = (one["where"], one["who"], one["reason"], one.get("stderr", ""))
                failures.append(tuple(map(str, told)))
    return Content(
        files=tuple(files),
        comparisons=tuple(comparisons),
        not_compared=not_compared,
        failures=tuple(failures),
        machines=tuple(machines.values()),
    )


def _machine(who: str, look: Mapping[str, Any]) -> tuple[str, ...]:
    clock = look.get("clock") or {}
    words = "the same"
    if around_s := clock.get("uncertainty_s"):
        words = f"{1000 * clock['offset_s']:+.1f} ms ± {1000 * around_s:.1f}"
    versions = look.get("versions", {}).items()
    return (
        who,
        *(str(look.get(key) or "unknown") for key in _FEATURES),
        ", ".join(f"{name} {version}" for name, version in versions),
        words,
    )
