# SPDX-License-Identifier: Apache-2.0
"""``/proc/stat``: where the CPUs' time went."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from jc.parsers import proc_stat

from nova_perfvm.measure.collect.collected import Collected, NotReadError

PATH: Final = "/proc/stat"
# Time of guests of this machine is within user and nice.
_WITHIN: Final = ("guest", "guest_nice")
_BOOTED: Final = re.compile(r"^btime (\d+)$", re.MULTILINE)


class CPUTime(NamedTuple):
    """Time of a CPU between two looks, in ticks of the clock.

    :ivar stolen_ever: since the machine started
    :ivar idle: with nothing to do, also while it waits for a disk
    :ivar interrupted: in interrupts and softirqs
    """

    total: int
    stolen: int
    stolen_ever: int
    idle: int
    interrupted: int

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
        spent = {name: now[name] - first[cpu].get(name, 0) for name in now}
        if min(sum(spent.values()), spent["steal"]) < 0:
            raise NotReadError(PATH, "it runs backwards: the machine began anew")
        found[cpu] = CPUTime(
            total=sum(spent.values()),
            stolen=spent["steal"],
            stolen_ever=now["steal"],
            idle=spent["idle"] + spent.get("iowait", 0),
            interrupted=spent.get("irq", 0) + spent.get("softirq", 0),
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
    try:
        seen = proc_stat.parse(text, quiet=True)
    except (ValueError, IndexError) as exc:
        raise NotReadError(PATH, f"it cannot be understood: {exc}") from exc
    found: dict[int, dict[str, int]] = {}
    for key, fields in seen.items():
        number = key.removeprefix("cpu")
        if not number.isdigit() or not isinstance(fields, dict):
            continue
        if "steal" not in fields:
            raise NotReadError(PATH, "this kernel does not tell what is stolen")
        times = {name: ticks for name, ticks in fields.items() if name not in _WITHIN}
        found[int(number)] = times
    return found
