# SPDX-License-Identifier: Apache-2.0
"""What VMs did on a host while it was measured itself, as the baseline.

VMs that wait for their own turn are there, and idle.  Those that are busy take CPUs
from the baseline, and a baseline that is too low flatters the VMs.

jc's parser of /proc/PID/stat is not used: it finds nothing where a priority or a nice
value is negative.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from nova_perfvm.measure.bench import connection
from nova_perfvm.measure.bench.connection import TargetError
from nova_perfvm.measure.bench.scenario import Target

# Of one CPU, for each VM: the ticks and services of an idle guest take less.
IDLE_BELOW: Final = 0.05
_LOOK_S: Final = 30
# Ticks a second, then /proc/PID/stat of each process of QEMU.
_SCRIPT: Final = """\
getconf CLK_TCK
[ -r /proc/1/comm ] || exit 1
for process in /proc/[0-9]*; do
  read -r name < "$process/comm" || continue
  case $name in qemu-*|kvm) cat "$process/stat" ;; esac
done 2> /dev/null
exit 0
"""
_STAT: Final = re.compile(r"(\d+) \(.*\) \S+((?: -?\d+)+)")
# utime and stime, counted from behind the state; time of guests is within utime.
_UTIME, _STIME = 10, 11


class Seen(NamedTuple):
    """The processes of QEMU on a host, at one time.

    :ivar cpu_s: {process: seconds on a CPU since it began}
    """

    at_s: float
    cpu_s: Mapping[int, float]


class Busy(NamedTuple):
    """What all VMs of a host did while it was measured.

    :ivar step: key of the step
    :ivar cpus: how many CPUs they used
    """

    step: str
    vms: int
    cpus: float

    @property
    def idle(self) -> bool:
        """Whether they took nothing from the baseline."""
        return self.cpus <= IDLE_BELOW * self.vms

    def __str__(self) -> str:
        """Return what they did."""
        return f"{self.vms} VM(s) used {self.cpus:.2f} CPUs in step {self.step}"


async def look(targets: Iterable[Target]) -> dict[str, Seen]:
    """Return the VMs on each target that is a host, where that is to be seen."""
    hosts = [target for target in targets if target.kind == "host"]
    found = await asyncio.gather(*map(_seen, hosts))
    return {
        target.name: seen
        for target, seen in zip(hosts, found, strict=True)
        if seen is not None
    }


async def _seen(target: Target) -> Seen | None:
    try:
        text = await connection.run(target, ["sh", "-c", _SCRIPT], _LOOK_S)
    except TargetError:
        return None
    first, *lines = text.splitlines() or [""]
    if not first.isdecimal():
        return None
    cpu_s = {}
    for match in filter(None, map(_STAT.fullmatch, lines)):
        fields = match[2].split()
        cpu_s[int(match[1])] = (int(fields[_UTIME]) + int(fields[_STIME])) / int(first)
    return Seen(time.monotonic(), cpu_s)


def between(
    before: Mapping[str, Seen], after: Mapping[str, Seen]
) -> dict[str, dict[str, Any]]:
    """Return what a record has of a step: what VMs did between two looks."""
    found = {}
    for who in before.keys() & after.keys():
        first, last = before[who], after[who]
        used = sum(s - first.cpu_s.get(pid, 0.0) for pid, s in last.cpu_s.items())
        found[who] = {
            "vms": len(last.cpu_s),
            "cpu_s": round(max(0.0, used), 3),
            "seconds": round(last.at_s - first.at_s, 3),
        }
    return found


def busiest(run: Mapping[str, Any]) -> dict[str, Busy]:
    """Return of each host the step in which its VMs did most; warm-up left out.

    :param run: of a record; one of an earlier version has nothing of it
    :raises ValueError: for what bench run does not write
    """
    found: dict[str, Busy] = {}
    try:
        for step in run["steps"]:
            if step.get("warm_up"):
                continue
            for who, one in step.get("beside", {}).items():
                cpus = float(one["cpu_s"]) / float(one["seconds"])
                if not 0 <= cpus < math.inf:
                    raise ValueError(f"{cpus} CPUs")
                busy = Busy(str(step["key"]), int(one["vms"]), cpus)
                found[who] = max(busy, found.get(who, busy), key=lambda b: b.cpus)
    except (KeyError, TypeError, AttributeError, ArithmeticError) as exc:
        message = f"beside: not what bench run writes: {exc}"
        raise ValueError(message) from exc
    return found
