# SPDX-License-Identifier: Apache-2.0
"""sysbench: CPU.

Version 1.0.20 has no JSON: its text is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from nova_perfvm.measure.bench.tools import tool

NAME: Final = "sysbench"

_LINE: Final = "sysbench cpu --threads={1} --time={0.seconds} --percentile=99 run"
_ROW: Final = re.compile(r"^\s+(\w[\w ]*):\s+([\d.]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CPU:
    """``sysbench cpu``: prime numbers; what LY measured its VMs with."""

    threads: tool.Threads = (1, 4, 8, 16, tool.VCPUS)
    seconds: tool.Seconds = 30

    program: ClassVar[str] = NAME

    def runs(self, _place: tool.Place) -> Iterator[tool.Run]:
        """Yield the runs, one for each number of threads."""
        for threads in self.threads:
            command = tool.words(_LINE, self, threads)
            yield tool.Run(NAME, "sysbench cpu", threads, self.seconds, command, parse)


@tool.output_of(NAME)
def parse(text: str) -> dict[str, float]:
    """Read the output.

    :raises OutputError: when it is another one
    """
    found = dict(_ROW.findall(text))
    latencies = {
        "cpu.latency_p99_ms": float(found["99th percentile"]),
        "cpu.latency_max_ms": float(found["max"]),
    }
    # Two decimals are printed: 0.00 is shorter than it can tell.
    return {"cpu.events_per_second": float(found["events per second"])} | {
        metric: ms for metric, ms in latencies.items() if ms > 0
    }
