# SPDX-License-Identifier: Apache-2.0
"""``/proc/stat``: where the CPUs' time went."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError

PATH: Final = "/proc/stat"
_CPU: Final = re.compile(r"^cpu(\d+) (.*)$", re.MULTILINE)
# What follows is time of guests of this machine, which user and nice contain.
_COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
# Of Linux 2.6.33 and newer.
_OF_GUESTS = ("guest", "guest_nice")
_BOOTED: Final = re.compile(r"^btime (\d+)$", re.MULTILINE)


class CPUTime(NamedTuple):
    """Time of a CPU between two looks, in ticks of the clock.

    :ivar stolen_ever: since the machine started
    :ivar idle: with nothing to do, also while it waits for a disk
    :ivar interrupted: in interrupts and softirqs
    :ivar programs: in user space, but for VMs of this machine
    """

    total: int
    stolen: int
    stolen_ever: int
    idle: int
    interrupted: int
    programs: int = 0

    @property
    def share(self) -> float:
        """The share that was stolen."""
        return self.stolen / self.total if self.total else 0.0


def read(collected: Collected) -> dict[int, CPUTime]:
    """Return the time of each CPU between the looks.

    :raises NotReadError: when it was not read twice, or does not say what was stolen
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
    """Return when the machine started, in seconds since 1970 of its own clock.

    :raises NotReadError: when that was not read
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
            raise NotReadError(PATH, "this kernel does not tell what is stolen")
        names = (*_COLUMNS, *_OF_GUESTS)
        found[int(cpu)] = dict(zip(names, map(int, ticks), strict=False))
    if not found:
        raise NotReadError(PATH, "it names no CPU")
    return found
