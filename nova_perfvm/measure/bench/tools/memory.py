# SPDX-License-Identifier: Apache-2.0
"""Bandwidth and latency of memory, on a working set that no cache holds.

sysbench runs ``memory.lua``, which says what is counted.  sysbench's own test of memory
works on 1 KiB, which a core has in its first cache: it tells nothing of a NUMA node.
No package of Debian 12 follows pointers: lmbench is non-free, numactl comes without
numademo, stress-ng 0.15 has no such test.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from nova_perfvm.measure.bench.tools import sysbench, tool

# As STREAM asks for: of all caches of the last level, https://www.cs.virginia.edu/stream.
TIMES_LAST_LEVEL: Final = 4
_LUA: Final = Path(__file__).with_suffix(".lua")
# sysbench takes a script from a file; no number of threads stands for one a CPU.
_RUN: Final = """\
f=$(mktemp) || exit
trap 'rm -f "$f"' EXIT
trap exit TERM
printf '%s' "$1" > "$f"
threads=$2
shift 2
sysbench "$f" "--threads=${threads:-$(nproc)}" "$@" run
"""

# Either is all that memory.lua prints, by its mode.
_FIGURES: Final = {"bandwidth_mib_per_second", "random_access_ns"}


@dataclass(frozen=True, slots=True)
class Memory:
    """A mode of ``memory.lua``."""

    threads: tool.Threads = (1, tool.VCPUS)
    seconds: tool.Seconds = 30

    program: ClassVar[str] = sysbench.NAME
    name: ClassVar[str]
    mode: ClassVar[str]

    def runs(self, place: tool.Place) -> Iterator[tool.Run]:
        """Yield the runs, one for each number of threads."""
        for threads in self.threads:
            size_mb, seconds = place.working_set_mb, self.seconds
            command = _command(self.mode, size_mb, seconds, str(threads))
            yield tool.Run(self.program, self.name, threads, seconds, command, parse)


@dataclass(frozen=True, slots=True)
class Bandwidth(Memory):
    """What all threads together read and write, as STREAM's triad."""

    name: ClassVar[str] = "memory bandwidth"
    mode: ClassVar[str] = "stream"


@dataclass(frozen=True, slots=True)
class Latency(Memory):
    """How long a thread waits for a word at an address that is drawn by lot."""

    name: ClassVar[str] = "memory latency"
    mode: ClassVar[str] = "chase"


def load(who: str, working_set_mb: int) -> tool.ServerCommand:
    """Return the command that keeps a target's CPUs and memory busy until ended."""
    command = _command("stream", working_set_mb, 0, "")
    return tool.ServerCommand(who, command, ready="Threads started!", times=1)


def _command(mode: str, mb: int, seconds: int, threads: str) -> tuple[str, ...]:
    options = (f"--mode={mode}", f"--mib={mb}", f"--time={seconds}")
    return tool.shell(_RUN, _LUA.read_text("utf-8"), threads, *options)


@tool.output_of("memory.lua")
def parse(text: str) -> dict[str, float]:
    """Return {metric: value} of the JSON of ``memory.lua``, behind sysbench's words.

    :raises OutputError: when the text has no such JSON
    """
    (found,) = tool.documents_of("memory.lua", text)
    (figure,) = _FIGURES & found.keys()
    return {f"memory.{figure}": float(found[figure])}
