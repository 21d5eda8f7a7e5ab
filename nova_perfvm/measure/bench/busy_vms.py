# SPDX-License-Identifier: Apache-2.0
"""What VMs did on a host while it was measured itself, as the baseline.

VMs that wait for their own turn are there, and idle.  Those that are busy take CPUs
from the baseline, and a baseline that is too low flatters the VMs.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from nova_perfvm.measure.bench import connection
from nova_perfvm.measure.bench.connection import TargetError
from nova_perfvm.measure.bench.scenario import Target
from nova_perfvm.printable import number_of

# Of one CPU, for any VM: the ticks and services of an idle guest take less.
IDLE_BELOW: Final = 0.05
_LOOK_S: Final = 30
# Of each process of QEMU its number, and for how many seconds it was on a CPU: utime,
# which has the guest's time in it, and stime, counted from behind the name.
_SCRIPT: Final = """\
[ -r /proc/1/comm ] || exit 1
ticks=$(getconf CLK_TCK) || exit 1
for process in /proc/[0-9]*; do
  read -r name < "$process/comm" || continue
  case $name in qemu-*|kvm) cat "$process/stat" ;; esac
done 2> /dev/null | awk -v ticks="$ticks" '
    { pid = $1; sub(/^.*\\) /, ""); printf "%d %.2f\\n", pid, ($12 + $13) / ticks }
'
"""


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
    :ivar most: of those, what the busiest of them used
    """

    step: str
    vms: int
    cpus: float
    most: float

    @property
    def idle(self) -> bool:
        """Whether none of them took anything from the baseline."""
        return self.most <= IDLE_BELOW

    def __str__(self) -> str:
        """Return what they did."""
        return (
            f"{number_of(self.vms, 'VM')} used {self.cpus:.2f} CPUs, "
            f"one of them {self.most:.2f}, "
            f"in step {self.step}"
        )


class Beside(NamedTuple):
    """What is known of the VMs of a host, of all steps that count.

    :ivar busiest: the step in which one of them did most
    :ivar unknown: keys of the steps of which nothing is known
    """

    busiest: Busy | None
    unknown: tuple[str, ...]

    @property
    def doubt(self) -> str:
        """Why they may have taken something from the baseline; empty if not."""
        if self.busiest and not self.busiest.idle:
            return f"{self.busiest}: a baseline that is too low flatters the VMs"
        if self.unknown:
            more = f", and {len(self.unknown) - 1} more" if self.unknown[1:] else ""
            return f"what VMs did is not known of step {self.unknown[0]}{more}"
        return ""


async def look(targets: Iterable[Target]) -> dict[str, Seen | None]:
    """Return the VMs on each target that is a host; None where nobody can tell."""
    hosts = [target for target in targets if target.kind == "host"]
    found = await asyncio.gather(*map(_seen, hosts))
    return {target.name: seen for target, seen in zip(hosts, found, strict=True)}


async def _seen(target: Target) -> Seen | None:
    try:
        text = await connection.run(target, ["sh", "-c", _SCRIPT], _LOOK_S)
        rows = map(str.split, text.splitlines())
        return Seen(time.monotonic(), {int(pid): float(cpu_s) for pid, cpu_s in rows})
    except (TargetError, ValueError):
        # Such as a greeting of the shell there.
        return None


def between(
    before: Mapping[str, Seen | None], after: Mapping[str, Seen | None]
) -> dict[str, dict[str, Any] | None]:
    """Return what a record has of a step: what VMs did between two looks at hosts.

    It is None of a host for which nobody can tell: of a process that ended meanwhile
    the kernel has forgotten what it used, and its number may be another's.
    """
    return {who: _used(first, after[who]) for who, first in before.items()}


def _used(first: Seen | None, last: Seen | None) -> dict[str, Any] | None:
    if first is None or last is None:
        return None
    used = [s - first.cpu_s.get(pid, 0.0) for pid, s in last.cpu_s.items()]
    if first.cpu_s.keys() - last.cpu_s.keys() or min(used, default=0) < 0:
        return None
    return {
        "vms": len(last.cpu_s),
        "cpu_s": round(sum(used), 3),
        "most_s": round(max(used, default=0.0), 3),
        "seconds": round(last.at_s - first.at_s, 3),
    }


def of_hosts(run: Mapping[str, Any]) -> dict[str, Beside]:
    """Return what VMs did on each host while it was measured; warm-up left out.

    :param run: of a record
    :raises ValueError: for what bench run does not write
    """
    found: dict[str, Beside] = {}
    try:
        targets = run["scenario"]["targets"]
        for step in run["steps"]:
            if step.get("warm_up"):
                continue
            for who in step["targets"]:
                if targets[who]["kind"] == "host":
                    one = step.get("beside", {}).get(who)
                    known = found.get(who, Beside(None, ()))
                    found[who] = _joined(known, str(step["key"]), one)
    except (KeyError, TypeError, AttributeError, ArithmeticError) as exc:
        message = f"beside: not what bench run writes: {exc}"
        raise ValueError(message) from exc
    return found


def _joined(known: Beside, step: str, one: Mapping[str, Any] | None) -> Beside:
    if one is None:
        return known._replace(unknown=(*known.unknown, step))
    seconds = float(one["seconds"])
    cpus, most = float(one["cpu_s"]) / seconds, float(one["most_s"]) / seconds
    if not 0 <= most <= cpus < math.inf:
        raise ValueError(f"{cpus} CPUs, of which one process has {most}")
    busy = Busy(step, int(one["vms"]), cpus, most)
    busiest = max(busy, known.busiest or busy, key=lambda b: b.most)
    return known._replace(busiest=busiest)
