# SPDX-License-Identifier: Apache-2.0
"""``/proc/PID/task/TID/schedstat``: how long a thread ran, and waited for a CPU.

The fields are nanoseconds on a CPU, nanoseconds ready to run without a CPU, and the
number of times on a CPU (Linux, Documentation/scheduler/sched-stats.rst).  A kernel
without CONFIG_SCHED_INFO has three zeros.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError

NAME: Final = "schedstat"
_FIELDS: Final = re.compile(r"(\d+) (\d+) \d+\n?")


class Scheduled(NamedTuple):
    """Nanoseconds between the looks that a thread ran, and waited for a CPU."""

    ran_ns: int
    waited_ns: int


def read(collected: Collected, path: str) -> Scheduled:
    """Return a thread's running and waiting time between the looks.

    :param path: directory of the thread in /proc
    :raises NotReadError: when schedstat was not read twice, or the kernel counts
        nothing
    """
    path = f"{path}/{NAME}"
    first, later = (_parsed(path, text) for text in collected.looks(path))
    if not later[0]:
        reason = "it stands at 0: this kernel counts nothing (CONFIG_SCHED_INFO)"
        raise NotReadError(path, reason)
    if not later[1]:
        # Even a thread alone on its CPU waits some nanoseconds for each wakeup.
        reason = "the thread never waited since boot: this kernel counts no waiting"
        raise NotReadError(path, reason)
    found = Scheduled(later[0] - first[0], later[1] - first[1])
    if min(found) < 0:
        raise NotReadError(path, "it runs backwards: another thread has the ID now")
    return found


def _parsed(path: str, text: str) -> tuple[int, int]:
    match = _FIELDS.fullmatch(text)
    if match is None:
        raise NotReadError(path, f"expected three numbers, found {text!r:.40}")
    return int(match[1]), int(match[2])
