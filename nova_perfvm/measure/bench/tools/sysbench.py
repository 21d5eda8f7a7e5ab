# SPDX-License-Identifier: Apache-2.0
"""sysbench: CPU.

Version 1.0.20 has no JSON: its text is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from nova_perfvm.measure.bench.tools.tool import (
    VCPUS,
    Figure,
    OutputError,
    Place,
    Run,
    Seconds,
    Threads,
)

NAME: Final = "sysbench"
VERSION: Final = (NAME, "--version")

_PERCENTILE: Final = 99
_EVENTS: Final = re.compile(r"events per second:\s+([\d.]+)")
_MAX: Final = re.compile(r"^\s+max:\s+([\d.]+)", re.MULTILINE)
_TAIL: Final = re.compile(rf"^\s+{_PERCENTILE}th percentile:\s+([\d.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CPU:
    """``sysbench cpu``: prime numbers; what LY measured its VMs with."""

    threads: Threads = (1, 4, 8, 16, VCPUS)
    seconds: Seconds = 30

    program: ClassVar[str] = NAME

    def runs(self, _place: Place) -> Iterator[Run]:
        """Yield the runs, one for each number of threads."""
        for threads in self.threads:
            command = (
                *(NAME, "cpu", f"--threads={threads}", f"--time={self.seconds}"),
                *(f"--percentile={_PERCENTILE}", "run"),
            )
            yield Run(NAME, "sysbench cpu", threads, self.seconds, command, parse)


def parse(text: str) -> list[Figure]:
    """Read the output.

    :raises OutputError: when it is another one
    """
    events = _number(_EVENTS, text, "events per second")
    return [
        Figure("cpu.events_per_second", events, "1/s", "higher"),
        *_tails(text),
    ]


def _tails(text: str) -> Iterator[Figure]:
    for label, pattern, words in (
        (f"p{_PERCENTILE}", _TAIL, f"{_PERCENTILE}th percentile"),
        ("max", _MAX, "max"),
    ):
        value = _number(pattern, text, words)
        # Two decimals are printed: 0.00 is shorter than it can tell.
        if value > 0:
            yield Figure(f"cpu.latency_{label}_ms", value, "ms", "lower")


def _number(pattern: re.Pattern[str], text: str, words: str) -> float:
    match = pattern.search(text)
    if match is None:
        raise OutputError(f"sysbench's output has no {words!r}")
    return float(match[1])
