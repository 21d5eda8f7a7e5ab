# SPDX-License-Identifier: Apache-2.0
"""sysbench: CPU and memory.

Version 1.0.20 has no JSON: its text is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, Literal

from nova_perfvm.documents.keys import EACH_ONCE, some
from nova_perfvm.measure.bench.tools.tool import (
    LY_THREADS,
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
_MIB: Final = re.compile(r"MiB transferred \(([\d.]+) MiB/sec\)")
_MAX: Final = re.compile(r"^\s+max:\s+([\d.]+)", re.MULTILINE)
_TAIL: Final = re.compile(rf"^\s+{_PERCENTILE}th percentile:\s+([\d.]+)", re.MULTILINE)

Operations = Annotated[
    tuple[Literal["read", "write"], ...],
    some("a list of read, write, or both"),
    EACH_ONCE,
]


@dataclass(frozen=True, slots=True)
class CPU:
    """``sysbench cpu``: prime numbers; what LY measured its VMs with."""

    threads: Threads = LY_THREADS
    seconds: Seconds = 30

    def runs(self, _place: Place) -> Iterator[Run]:
        """Yield the runs, one for each number of threads."""
        for threads in self.threads:
            command = _command("cpu", threads, self.seconds)
            yield Run(NAME, "sysbench cpu", threads, self.seconds, command, parse_cpu)


@dataclass(frozen=True, slots=True)
class Memory:
    """``sysbench memory``."""

    threads: Threads = LY_THREADS
    seconds: Seconds = 30
    operations: Operations = ("read", "write")

    def runs(self, _place: Place) -> Iterator[Run]:
        """Yield the runs, one for each operation and number of threads."""
        for operation in self.operations:
            for threads in self.threads:
                yield Run(
                    NAME,
                    f"sysbench memory {operation}",
                    threads,
                    self.seconds,
                    (
                        *_command("memory", threads, self.seconds)[:-1],
                        f"--memory-oper={operation}",
                        # The 100 GB of the default end before the time does.
                        "--memory-total-size=0",
                        "run",
                    ),
                    partial(parse_memory, operation),
                )


def _command(test: str, threads: int, seconds: int) -> tuple[str, ...]:
    return (
        NAME,
        test,
        f"--threads={threads}",
        f"--time={seconds}",
        f"--percentile={_PERCENTILE}",
        "run",
    )


def parse_cpu(text: str) -> list[Figure]:
    """Read the output of ``sysbench cpu``.

    :raises OutputError: when it is another one
    """
    events = _number(_EVENTS, text, "events per second")
    return [
        Figure("cpu.events_per_second", events, "1/s", "higher"),
        *_tails("cpu.", text),
    ]


def parse_memory(operation: str, text: str) -> list[Figure]:
    """Read the output of ``sysbench memory``.

    :raises OutputError: when it is another one
    """
    rate = _number(_MIB, text, "MiB/sec")
    return [
        Figure(f"memory.{operation}_mib_per_second", rate, "MiB/s", "higher"),
        *_tails(f"memory.{operation}_", text),
    ]


def _tails(name: str, text: str) -> Iterator[Figure]:
    for label, pattern, words in (
        (f"p{_PERCENTILE}", _TAIL, f"{_PERCENTILE}th percentile"),
        ("max", _MAX, "max"),
    ):
        value = _number(pattern, text, words)
        # Two decimals are printed: 0.00 is shorter than it can tell.
        if value > 0:
            yield Figure(f"{name}latency_{label}_ms", value, "ms", "lower")


def _number(pattern: re.Pattern[str], text: str, words: str) -> float:
    match = pattern.search(text)
    if match is None:
        raise OutputError(f"sysbench's output has no {words!r}")
    return float(match[1])
