# SPDX-License-Identifier: Apache-2.0
"""CPU time of VMs and other processes on a host during the host's own runs.

VMs that wait for their turn are idle.  Busy VMs and other processes (ceph-osd, apt)
take CPU time from the baseline, and a low baseline flatters the VMs.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from nova_perfvm import cpuset
from nova_perfvm.measure.bench import connection
from nova_perfvm.measure.bench.connection import TargetError, Used
from nova_perfvm.measure.bench.scenario import Target
from nova_perfvm.printable import number_of

# Share of one CPU: the ticks and services of an idle guest take less.
IDLE_BELOW: Final = 0.05
_LOOK_S: Final = 30
# Shares of the benchmark's CPUs, on average over the rounds of a run.  What others take
# from the baseline flatters VMs; 3 % is a tenth of what a target lets a VM lose.
NOTED_ABOVE: Final = 0.01
MOST_OTHERS: Final = 0.03
# By process: seconds on a CPU, in which QEMU's has those of its guest. By CPU: those in
# user space and in the kernel, but for interrupts, which the benchmark's packets cause.
_SCRIPT: Final = """\
import collections, glob, json, os
open("/proc/1/comm").close()
tick, vms, names = os.sysconf("SC_CLK_TCK"), {}, collections.Counter()
for path in glob.glob("/proc/[0-9]*"):
    try:
        with open(path + "/stat", errors="replace") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
    except OSError:
        continue
    used = sum(map(int, rest.split()[11:13])) / tick
    names[name] += used
    if name.startswith("qemu-") or name == "kvm":
        vms[path[6:]] = used
with open("/proc/stat") as file:
    rows = [line.split() for line in file if line[:3] == "cpu" and line[3] != " "]
cpus = {row[0][3:]: sum(map(int, row[1:4])) / tick for row in rows}
print(json.dumps([vms, cpus, names]))
"""


class Seen(NamedTuple):
    """The processes of a host, at one time.

    :ivar cpu_s: {PID of QEMU: CPU seconds since the process began}
    :ivar ran_s: {CPU: seconds in user space and kernel, without interrupts}
    :ivar names_s: {name of processes: CPU seconds}
    """

    at_s: float
    cpu_s: Mapping[int, float]
    ran_s: Mapping[int, float] = {}
    names_s: Mapping[str, float] = {}


class Busy(NamedTuple):
    """CPU time of all VMs of a host during one step of the host.

    :ivar step: key of the step
    :ivar cpus: number of CPUs that all VMs used
    :ivar most: number of CPUs that the busiest VM used
    """

    step: str
    vms: int
    cpus: float
    most: float

    @property
    def idle(self) -> bool:
        """Whether each VM used at most :data:`IDLE_BELOW` of a CPU."""
        return self.most <= IDLE_BELOW

    def __str__(self) -> str:
        """Return the CPU time of the VMs in words."""
        return (
            f"{number_of(self.vms, 'VM')} used {self.cpus:.2f} CPUs, "
            f"one of them {self.most:.2f}, "
            f"in step {self.step}"
        )


class Own(NamedTuple):
    """The benchmark's own work on a machine.

    :ivar threads: number of measured threads
    """

    used: Sequence[Used]
    threads: int


class Others(NamedTuple):
    """The share of the benchmark's CPUs that other processes used, VMs included.

    In one step, or on average over steps.  Processes on CPUs that the benchmark leaves
    idle (OVS-DPDK's) do not count.

    :ivar where: key of the step, or the common key of the steps without their round
    :ivar loudest: the running process that used most; empty without such a process
    """

    where: str
    share: float
    loudest: str

    def __str__(self) -> str:
        """Return the share in words."""
        of = self.loudest and f", mostly {self.loudest}"
        return f"others took {self.share:.1%} of its CPUs in {self.where}{of}"


class Beside(NamedTuple):
    """VMs and other processes of a host in all counted steps.

    :ivar busiest: the step in which a VM used most
    :ivar unknown: keys of the steps without readings
    :ivar others: use of the benchmark's CPUs by other processes, step by step
    """

    busiest: Busy | None
    unknown: tuple[str, ...]
    others: tuple[Others, ...] = ()

    @property
    def loudest(self) -> Others | None:
        """The mean share of the runs in which others took most; None without others."""
        kinds: dict[str, list[Others]] = {}
        for one in self.others:
            kinds.setdefault(one.where.partition("/")[2], []).append(one)
        means = [
            Others(
                kind, sum(o.share for o in of) / len(of), max(of, key=_share).loudest
            )
            for kind, of in kinds.items()
        ]
        return max(means, key=_share, default=None)

    @property
    def doubt(self) -> str:
        """The reason to doubt the baseline; empty without one."""
        if self.busiest and not self.busiest.idle:
            return f"{self.busiest}: a baseline that is too low flatters the VMs"
        if self.unknown:
            more = f", and {len(self.unknown) - 1} more" if self.unknown[1:] else ""
            return f"what VMs did is not known of step {self.unknown[0]}{more}"
        return ""


async def look(targets: Iterable[Target]) -> dict[str, Seen | None]:
    """Return {host: its processes} of the targets; None where reading them failed."""
    hosts = [target for target in targets if target.kind == "host"]
    found = await connection.together(map(_seen, hosts))
    return {target.name: seen for target, seen in zip(hosts, found, strict=True)}


async def _seen(target: Target) -> Seen | None:
    try:
        text = await connection.run(target, ["python3", "-c", _SCRIPT], _LOOK_S)
        # A greeting of the shell there may stand before it.
        vms, cpus, names = json.loads(text.strip().rpartition("\n")[2])
    except (TargetError, ValueError):
        return None
    vms, cpus = ({int(n): float(s) for n, s in of.items()} for of in (vms, cpus))
    return Seen(time.monotonic(), vms, cpus, names)


def between(
    before: Mapping[str, Seen | None],
    after: Mapping[str, Seen | None],
    own: Mapping[str, Own | None],
) -> dict[str, dict[str, Any] | None]:
    """Return the record of a step: the use of hosts by others between two readings.

    None for a host without a reading or known `own`, or on which a VM ended: the kernel
    keeps no CPU time of an ended process, and may give its PID to another process.

    :param own: {target: the benchmark's work on the target's machine}
    """
    return {who: _used(first, after[who], own[who]) for who, first in before.items()}


def _used(
    first: Seen | None, last: Seen | None, own: Own | None
) -> dict[str, Any] | None:
    if first is None or last is None or own is None:
        return None
    used = [s - first.cpu_s.get(pid, 0.0) for pid, s in last.cpu_s.items()]
    if first.cpu_s.keys() - last.cpu_s.keys() or min(used, default=0) < 0:
        return None
    return {
        "vms": len(last.cpu_s),
        "cpu_s": round(sum(used), 3),
        "most_s": round(max(used, default=0.0), 3),
        "seconds": round(last.at_s - first.at_s, 3),
        **_others(first, last, own),
    }


def _others(first: Seen, last: Seen, own: Own) -> dict[str, Any]:
    """Return the part of a step's record on others' use of the benchmark's CPUs."""
    allowed = frozenset().union(*(cpuset.parse(one.cpus) for one in own.used))
    cpus = (allowed or last.ran_s.keys()) & first.ran_s.keys() & last.ran_s.keys()
    ran_s = sum(last.ran_s[cpu] - first.ran_s[cpu] for cpu in cpus)
    grown = {n: s - first.names_s.get(n, 0.0) for n, s in last.names_s.items()}
    loudest = max(grown, key=lambda name: grown[name], default="")
    return {
        "cpus": len(cpus),
        "threads": own.threads,
        "others_s": round(max(ran_s - sum(one.cpu_s for one in own.used), 0.0), 3),
        "loudest": loudest if grown.get(loudest, 0.0) > 0 else "",
    }


def of_hosts(run: Mapping[str, Any]) -> dict[str, Beside]:
    """Return {host: VMs and others during its measurements}, without warm-up.

    :param run: the run of a record
    :raises ValueError: when the run is not one of ``bench run``
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


def _share(of: Others) -> float:
    return of.share


def _joined(known: Beside, step: str, one: Mapping[str, Any] | None) -> Beside:
    """Add the record of a step, None without a reading, to those of a host."""
    if one is None:
        return known._replace(unknown=(*known.unknown, step))
    seconds = float(one["seconds"])
    cpus, most = float(one["cpu_s"]) / seconds, float(one["most_s"]) / seconds
    if not 0 <= most <= cpus < math.inf:
        raise ValueError(f"{cpus} CPUs, of which one process has {most}")
    busy = Busy(step, int(one["vms"]), cpus, most)
    busiest = max(busy, known.busiest or busy, key=lambda b: b.most)
    known = known._replace(busiest=busiest)
    if "others_s" not in one:
        # Records of earlier versions have VMs only.
        return known
    threads, count = int(one["threads"]), int(one["cpus"])
    taken = float(one["others_s"]) / seconds - max(count - threads, 0)
    share = max(taken, 0.0) / min(threads, count)
    if not taken < math.inf:
        raise ValueError(f"others took {share} of the CPUs")
    others = (*known.others, Others(step, share, str(one["loudest"])))
    return known._replace(others=others)
