# SPDX-License-Identifier: Apache-2.0
"""``/proc/PID/task/TID/schedstat``: how long a thread ran, and waited for a CPU.

Its fields are nanoseconds on a CPU, nanoseconds ready to run without one, and how
often it got one (Linux, Documentation/scheduler/sched-stats.rst).  A kernel without
CONFIG_SCHED_INFO has three zeros.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError

NAME: Final = "schedstat"
_FIELDS: Final = re.compile(r"(\d+) (\d+) \d+\n?")


class Scheduled(NamedTuple):
    """What a thread did between the looks, in nanoseconds."""

    ran_ns: int
    waited_ns: int


def read(collected: Collected, path: str) -> Scheduled:
    """Return what a thread did between the looks.

    :param path: of its directory
    :raises NotReadError: when that was not read twice, or tells nothing
    """
    path = f"{path}/{NAME}"
    first, later = (_parsed(path, text) for text in collected.looks(path))
    if not later[0]:
        reason = "it stands at 0: this kernel counts nothing (CONFIG_SCHED_INFO)"
        raise NotReadError(path, reason)
    if not later[1]:
        # Even a thread that is alone on its CPU waits some nanoseconds to begin.
        reason = "it never waited, not even to begin: this kernel does not count that"
        raise NotReadError(path, reason)
    found = Scheduled(later[0] - first[0], later[1] - first[1])
    if min(found) < 0:
        raise NotReadError(path, "it runs backwards: it is of another thread")
    return found


def _parsed(path: str, text: str) -> tuple[int, int]:
    match = _FIELDS.fullmatch(text)
    if match is None:
        raise NotReadError(path, f"expected three numbers, found {text!r:.40}")
    return int(match[1]), int(match[2])
