# SPDX-License-Identifier: Apache-2.0
"""cyclictest: how late a thread of real-time priority wakes up.

In a VM that is how long its vCPUs wait for a CPU.  It needs root, or the right to
real-time priorities.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Final

from nova_perfvm.documents.keys import count
from nova_perfvm.measure.bench.tools.tool import (
    VCPUS,
    Figure,
    OutputError,
    Place,
    Run,
    Seconds,
    Threads,
    at,
    number,
    shell,
)

NAME: Final = "cyclictest"
# It has no option for its version alone.
VERSION: Final = (NAME, "--help")

_PER_MILLE: Final = {"p99": 990, "p99_9": 999}
# What is later is in no bin, but the latest of all is known.
_BINS_US: Final = 20_000
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

    :ivar loaded: whether all CPUs are busy meanwhile, as a VM's are that works
    """

    threads: Threads = (VCPUS,)
    seconds: Seconds = 60
    priority: Annotated[int, count(1, 99, "priority")] = 90
    interval_us: Annotated[int, count(50, 1_000_000, "microseconds")] = 1000
    loaded: bool = True

    program: ClassVar[str] = NAME

    def runs(self, _place: Place) -> Iterator[Run]:
        """Yield the runs, one for each number of threads."""
        for threads in self.threads:
            line = (
                *(NAME, "--quiet", "--mlockall", "--affinity"),
                f"--priority={self.priority}",
                *(f"--interval={self.interval_us}", f"--threads={threads}"),
                *(f"--duration={self.seconds}", f"--histogram={_BINS_US}"),
            )
            yield Run(
                NAME,
                NAME,
                threads,
                self.seconds,
                shell(_RUN, *line),
                partial(parse, "loaded." if self.loaded else ""),
                loaded=self.loaded,
            )


def parse(state: str, text: str) -> list[Figure]:
    """Read cyclictest's JSON.

    :param state: what the metrics say of the load, with a dot

    :raises OutputError: when it is no such thing
    """
    try:
        document = json.loads(text)
    except ValueError as exc:
        raise OutputError(f"cyclictest printed no JSON: {exc}") from None
    threads = at(document, "thread")
    if not isinstance(threads, dict) or not threads:
        raise OutputError("cyclictest: no thread in its output")
    latest = max(number(thread, "max") for thread in threads.values())
    cycles = int(sum(number(thread, "cycles") for thread in threads.values()))
    bins = _bins(threads.values())
    return [
        *(
            Figure(f"scheduling.{state}latency_{label}_us", value, "us", "lower")
            for label, per_mille in _PER_MILLE.items()
            if (value := _quantile(bins, cycles, per_mille, latest)) > 0
        ),
        Figure(f"scheduling.{state}latency_max_us", latest, "us", "lower"),
    ]


def _bins(threads: Any) -> Counter[int]:
    found: Counter[int] = Counter()
    for thread in threads:
        histogram = at(thread, "histogram")
        try:
            found.update({int(us): int(times) for us, times in histogram.items()})
        except (AttributeError, TypeError, ValueError):
            raise OutputError("cyclictest: no histogram in its output") from None
    return found


def _quantile(bins: Counter[int], cycles: int, per_mille: int, latest: float) -> float:
    """Return the latency that a number of cycles do not exceed."""
    wanted = math.ceil(cycles * per_mille / 1000)
    seen = 0
    for us in sorted(bins):
        seen += bins[us]
        if seen >= wanted:
            return us
    return latest
