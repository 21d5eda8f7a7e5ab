# SPDX-License-Identifier: Apache-2.0
"""``/proc/stat``: the time of CPUs by its use."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError

PATH: Final = "/proc/stat"
_CPU: Final = re.compile(r"^cpu(\d+) (.*)$", re.MULTILINE)
# The columns _OF_GUESTS follow; user and nice include the time of guests.
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
# Since Linux 2.6.33.
_OF_GUESTS = ("guest", "guest_nice")
_BOOTED: Final = re.compile(r"^btime (\d+)$", re.MULTILINE)


class CPUTime(NamedTuple):
    """Time of a CPU between two looks, in clock ticks.

    :ivar stolen_ever: stolen time since boot
    :ivar idle: idle time, including waits for disks
    :ivar interrupted: time in interrupts and softirqs
    :ivar programs: time in user space, without VMs of this machine
    """

    total: int
    stolen: int
    stolen_ever: int
    idle: int
    interrupted: int
    programs: int = 0

    @property
    def share(self) -> float:
        """Stolen time as a share of all time."""
        return self.stolen / self.total if self.total else 0.0


def read(collected: Collected) -> dict[int, CPUTime]:
    """Return the time of each CPU between the looks.

    :raises NotReadError: when /proc/stat was not read twice, lacks steal or ran back
    """
    first, later = map(_cpus, collected.looks(PATH))
    found = {}
    for cpu, now in later.items():
        if cpu not in first:
            continue
        whole = {name: now[name] - first[cpu][name] for name in now}
        spent = {name: whole[name] for name in _COLUMNS}
        of_guests = sum(whole.get(name, 0) for name in _OF_GUESTS)
        if min(sum(spent.values()), spent["steal"]) < 0:
            raise NotReadError(PATH, "it runs backwards: the machine began anew")
        found[cpu] = CPUTime(
            total=sum(spent.values()),
            stolen=spent["steal"],
            stolen_ever=now["steal"],
            idle=spent["idle"] + spent["iowait"],
            interrupted=spent["irq"] + spent["softirq"],
            programs=max(spent["user"] + spent["nice"] - of_guests, 0),
        )
    return found


def booted_s(collected: Collected) -> int:
    """Return the boot time, in seconds since 1970 by the machine's own clock.

    :raises NotReadError: when /proc/stat was not read
    """
    match = _BOOTED.search(collected.text(PATH))
    if match is None:
        raise NotReadError(PATH, "it has no btime")
    return int(match[1])


def _cpus(text: str) -> dict[int, dict[str, int]]:
    """Return {CPU: {column: ticks}}."""
    found = {}
    for cpu, rest in _CPU.findall(text):
        ticks = rest.split()
        if len(ticks) < len(_COLUMNS) or not all(map(str.isdecimal, ticks)):
            raise NotReadError(PATH, "this kernel counts no steal time")
        names = (*_COLUMNS, *_OF_GUESTS)
        found[int(cpu)] = dict(zip(names, map(int, ticks), strict=False))
    if not found:
        raise NotReadError(PATH, "it names no CPU")
    return found
