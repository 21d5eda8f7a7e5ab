# SPDX-License-Identifier: Apache-2.0
"""sysbench: CPU.

sysbench 1.0.20 prints no JSON, so its text is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from nova_perfvm.measure.bench.tools import tool

NAME: Final = "sysbench"

_LINE: Final = "sysbench cpu --threads={1} --time={0.seconds} --percentile=99 run"
_ROW: Final = re.compile(r"^\s+(\w[\w ]*):\s+([\d.]+)$", re.MULTILINE)
_SETTING: Final = re.compile(
    r"^(Number of threads|Prime numbers limit): (\d+)$", re.MULTILINE
)


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
    """Return {metric: value} of the output of ``sysbench cpu``.

    :raises OutputError: when the text is another output
    """
    found = dict(_ROW.findall(text))
    if "events per second" not in found:
        raise tool.OutputError("sysbench: expected what sysbench cpu prints at its end")
    latencies = {
        # The 95th is its default, and none is printed with --percentile=0.
        f"cpu.latency_p{row.partition('th ')[0]}_ms": float(ms)
        for row, ms in found.items()
        if row.endswith("th percentile")
    } | {"cpu.latency_max_ms": float(found["max"])}
    # Two decimals are printed: 0.00 is shorter than it can tell.
    return {"cpu.events_per_second": float(found["events per second"])} | {
        metric: ms for metric, ms in latencies.items() if ms > 0
    }


def conditions(text: str) -> dict[str, Any]:
    """Return ``threads``, None if not told, and the work of each event."""
    found = dict(_SETTING.findall(text))
    threads = int(found.pop("Number of threads", 0)) or None
    return {"threads": threads} | found
