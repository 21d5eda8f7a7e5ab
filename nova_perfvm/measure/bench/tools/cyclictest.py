# SPDX-License-Identifier: Apache-2.0
"""cyclictest: how late a thread of real-time priority wakes up.

In a VM that is how long its vCPUs wait for a CPU.  It needs root, or the right to
real-time priorities.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Final

from nova_perfvm.documents.keys import count
from nova_perfvm.measure.bench.tools import tool

NAME: Final = "cyclictest"

_PER_MILLE: Final = {"p99": 990, "p99_9": 999}
# What is later than the last bin, in microseconds, is in none, but the latest of all is
# known.
_LINE: Final = """
cyclictest --quiet --mlockall --affinity --priority={0.priority} --histogram=20000
--interval={0.interval_us} --threads={1} --duration={0.seconds}
"""
# It writes JSON to a file only.
_RUN: Final = """\
f=$(mktemp) || exit
trap 'rm -f "$f"' EXIT
"$@" "--json=$f" > /dev/null || exit
cat "$f"
"""


@dataclass(frozen=True, slots=True)
class CyclicTest:
    """``cyclictest`` with threads that wake up all ``interval_us``, each on its CPU.

    :ivar loaded: whether a load keeps all CPUs busy, like those of a working VM
    """

    threads: tool.Threads = (tool.VCPUS,)
    seconds: tool.Seconds = 60
    priority: Annotated[int, count(1, 99, "priority")] = 90
    interval_us: Annotated[int, count(50, 1_000_000, "microseconds")] = 1000
    loaded: bool = True

    program: ClassVar[str] = NAME

    def runs(self, _place: tool.Place) -> Iterator[tool.Run]:
        """Yield the runs, one for each number of threads."""
        for threads in self.threads:
            command = tool.shell(_RUN, *tool.words(_LINE, self, threads))
            read = partial(parse, "loaded." if self.loaded else "")
            of_run = (NAME, NAME, threads, self.seconds)
            # The histogram of a thread has 20,000 lines.
            yield tool.Run(
                *(*of_run, command, read),
                loaded=self.loaded,
                most_bytes=2**20 * threads,
            )


@tool.output_of(NAME)
def parse(state: str, text: str) -> dict[str, float]:
    """Return {metric: microseconds} of cyclictest's JSON.

    :param state: part of the metrics' names that tells the load, with a dot
    :raises OutputError: when the text is no output of cyclictest
    """
    (document,) = tool.documents_of(NAME, text)
    threads = document["thread"].values()
    largest_us = max(thread["max"] for thread in threads)
    cycles = sum(thread["cycles"] for thread in threads)
    bins: Counter[int] = Counter()
    for thread in threads:
        bins.update({int(us): times for us, times in thread["histogram"].items()})
    found = {
        label: _quantile(bins, math.ceil(cycles * per_mille / 1000), largest_us)
        for label, per_mille in _PER_MILLE.items()
    }
    return {
        f"scheduling.{state}latency_{label}_us": us
        for label, us in (*found.items(), ("max", largest_us))
        if us > 0 or label == "max"
    }


def _quantile(bins: Counter[int], cycles: int, largest_us: int) -> int:
    """Return the latency that a number of cycles do not exceed."""
    seen = 0
    for us in sorted(bins):
        seen += bins[us]
        if seen >= cycles:
            return us
    return largest_us
