# SPDX-License-Identifier: Apache-2.0
"""Nothing limits the CPU time of a pinned VM: no quota, no weight, no policy.

By libvirt's XML, and by the cgroups of its threads and all above them, where
systemd's CPUQuota= of a slice shows, too.
"""

from collections.abc import Iterator
from typing import Final

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Check
from nova_perfvm.measure.checks.host_flaws import Flaw, of_flaws
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.observed import cgroups, processes
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import Role, Task

# VIR_CGROUP_CPU_QUOTA_MAX of libvirt (of older ones 18446744073709551): no quota, as
# are 0, -1 and max.
_NONE_FROM: Final = 17592186044415
_QUOTAS: Final = ("quota", "global_quota", "emulator_quota", "iothread_quota")
_OF_CACHES: Final = ("memorytune", "cachetune")
# By version of cgroups: its quota, its weight, and what each has by default (Linux,
# Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-design-CFS.rst).
_FILES: Final = {
    1: ("cpu.cfs_quota_us", "cpu.shares", 1024),
    2: ("cpu.max", "cpu.weight", 100),
}
_RUNTIME: Final = "/proc/sys/kernel/sched_rt_runtime_us"
# Policies of <linux/sched.h>: batch and idle; fifo and round robin.
_HELD_BACK, _REALTIME = (3, 5), (1, 2)


def _limited(text: str) -> bool:
    number = text.strip()
    return number.isdigit() and 0 < int(number) < _NONE_FROM


def flaws(subject: HostSubject, domain: Domain) -> Iterator[Flaw]:
    """Look at libvirt's XML and schedinfo, at threads, and at cgroups."""
    output = subject.collected.commands.get(f"virsh -r schedinfo {domain.uuid}")
    lines = (
        [line.partition(":") for line in output.stdout.splitlines()] if output else []
    )
    told = [(tag, domain.xml.findtext(f"cputune/{tag}", "")) for tag in _QUOTAS]
    told += [(name.strip(), value) for name, _, value in lines]
    for name, value in told:
        if name.endswith("quota") and _limited(value):
            yield Level.FAILURE, f"{name} {value.strip()}"
    for tag in _OF_CACHES:
        if domain.xml.find(f"cputune/{tag}") is not None:
            yield Level.FAILURE, tag
    process = subject.process_of(domain)
    own = [task for task in process.tasks if task.path.startswith(process.path)]
    yield from _of_threads(subject, own)
    found = dict.fromkeys(
        group
        for path in (process.path, *(task.path for task in own))
        for group in cgroups.groups(subject.collected, path, "cpu")
    )
    for group in found:
        yield from _of_group(subject, group)


def _of_group(subject: HostSubject, group: cgroups.ControlGroup) -> Iterator[Flaw]:
    collected, (quota, weight, least) = subject.collected, _FILES[group.version]
    limit = collected.text(f"{group.directory}/{quota}")
    if _limited(limit.partition(" ")[0]):
        yield Level.FAILURE, f"{group.directory}/{quota}: {limit.strip()}"
    share = collected.text(f"{group.directory}/{weight}").strip()
    if not share.isdigit() or int(share) < least:
        # hypervisor.vcpu_wait tells what it costs.
        yield Level.WARNING, f"{group.directory}/{weight}: {share}"
    if collected.files.get(f"{group.directory}/cpu.idle", "").strip() == "1":
        yield Level.FAILURE, f"{group.directory}/cpu.idle: 1"
    stat = f"{group.directory}/cpu.stat"
    times, _ = cgroups.grown(collected, stat, "nr_throttled")
    _, periods = cgroups.grown(collected, stat, "nr_periods")
    if times:
        yield Level.FAILURE, f"{stat}: throttled {times} times between the looks"
    elif periods:
        yield Level.UNKNOWN, f"{stat}: a quota was there, and may come back"


def _of_threads(subject: HostSubject, tasks: list[Task]) -> Iterator[Flaw]:
    stops = subject.collected.files.get(_RUNTIME, "").strip() != "-1"
    for task in tasks:
        if task.role is not Role.KVM:
            nice, policy = processes.scheduling(subject.collected, task)
            if nice > 0 or policy in _HELD_BACK:
                yield Level.FAILURE, f"{task}: nice {nice}, policy {policy}"
            elif policy in _REALTIME and stops:
                yield Level.WARNING, f"{task}: real time, stopped by {_RUNTIME}"


CHECK = Check(
    56,
    "hypervisor.cpu_limits",
    "Nothing limits a VM's CPU time",
    of_flaws(
        flaws,
        "no quota, the weight of others, SCHED_OTHER, never throttled",
        f"virsh -r schedinfo, {cgroups.ROOT} of its threads up to the root, "
        "/proc/PID/task/*/stat",
        "unset quota: of its flavor, CPUQuota= and CPUWeight= of its unit and slices",
    ),
)
