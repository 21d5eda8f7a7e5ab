# SPDX-License-Identifier: Apache-2.0
"""Only the policy limits CPU time, network and disks of a pinned VM.

Limits are read from libvirt's XML and from the cgroups of the VM's threads up to the
root, which show systemd's CPUQuota= of a slice, too.  The policy's IOPS are a minimum:
a disk's limit may not be lower (doc/source/admin/disk-consolidation.rst).
"""

from typing import Final
from xml.etree import ElementTree as ET

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Seen, vm_check
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import values
from nova_perfvm.measure.collect.collector import LIMITS_V1
from nova_perfvm.measure.observed import cgroups, processes
from nova_perfvm.measure.observed.domains import Domain, attribute
from nova_perfvm.measure.observed.processes import Role, Task
from nova_perfvm.policy.classes import Disk

# libvirt's VIR_CGROUP_CPU_QUOTA_MAX (18446744073709551 in older releases) means no
# quota, like 0, -1 and max.
_NONE_FROM: Final = 17592186044415
_QUOTAS: Final = ("quota", "global_quota", "emulator_quota", "iothread_quota")
_OF_CACHES: Final = ("memorytune", "cachetune")
# {cgroup version: (quota file, weight file, default weight)} (Linux,
# Documentation/admin-guide/cgroup-v2.rst and scheduler/sched-design-CFS.rst).
_FILES: Final = {
    1: ("cpu.cfs_quota_us", "cpu.shares", 1024),
    2: ("cpu.max", "cpu.weight", 100),
}
_RUNTIME: Final = "/proc/sys/kernel/sched_rt_runtime_us"
# Policies of <linux/sched.h>: batch and idle; fifo and round robin.
_HELD_BACK, _REALTIME = (3, 5), (1, 2)
_NO_LIMITS: Final = frozenset({"path", "weight"})


def _limited(text: str) -> bool:
    number = text.strip()
    return number.isdecimal() and 0 < int(number) < _NONE_FROM


@vm_check(
    56,
    "hypervisor.cpu_limits",
    source=f"virsh -r schedinfo, {cgroups.ROOT} of its threads up to the root, "
    "/proc/PID/task/*/stat",
    remedy="unset quota: of its flavor, CPUQuota= and CPUWeight= of its unit and "
    "slices; then openstack server reboot --hard {}",
)
def cpu_limits(host: HostSubject, domain: Domain) -> Seen:
    """Nothing limits a VM's CPU time."""
    schedinfo = host.collected.commands.get(f"virsh -r schedinfo {domain.uuid}")
    told = [(tag, domain.xml.findtext(f"cputune/{tag}", "")) for tag in _QUOTAS]
    told += values(schedinfo.stdout).items() if schedinfo else ()
    for name, value in told:
        if name.endswith("quota") and _limited(value):
            yield Level.FAILURE, f"{name} {value.strip()}"
    for tag in _OF_CACHES:
        if domain.xml.find(f"cputune/{tag}") is not None:
            yield Level.FAILURE, tag
    process = host.process_of(domain)
    own = [task for task in process.tasks if task.path.startswith(process.path)]
    for task in own:
        yield from _of_thread(host, task)
    found = dict.fromkeys(
        group
        for path in (process.path, *(task.path for task in own))
        for group in cgroups.groups(host.collected, path, "cpu")
    )
    for group in found:
        yield from _of_group(host, group)


def _of_group(host: HostSubject, group: cgroups.ControlGroup) -> Seen:
    collected, (quota, weight, least) = host.collected, _FILES[group.version]
    limit = collected.text(f"{group.directory}/{quota}")
    if _limited(limit.partition(" ")[0]):
        yield Level.FAILURE, f"{group.directory}/{quota}: {limit.strip()}"
    share = collected.text(f"{group.directory}/{weight}").strip()
    if not share.isdecimal() or int(share) < least:
        # hypervisor.vcpu_wait measures the cost.
        yield Level.WARNING, f"{group.directory}/{weight}: {share}"
    if collected.files.get(f"{group.directory}/cpu.idle", "").strip() == "1":
        yield Level.FAILURE, f"{group.directory}/cpu.idle: 1"
    stat = f"{group.directory}/cpu.stat"
    if times := cgroups.grown(collected, stat, "nr_throttled")[0]:
        yield Level.FAILURE, f"{stat}: throttled {times} times between the looks"
    elif cgroups.grown(collected, stat, "nr_periods")[1]:
        yield Level.UNKNOWN, f"{stat}: a quota was there, and may come back"


def _of_thread(host: HostSubject, task: Task) -> Seen:
    if task.role is Role.KVM:
        return
    nice, policy = processes.scheduling(host.collected, task)
    if nice > 0 or policy in _HELD_BACK:
        yield Level.FAILURE, f"{task}: nice {nice}, policy {policy}"
    elif policy in _REALTIME and host.collected.files.get(_RUNTIME, "").strip() != "-1":
        yield Level.WARNING, f"{task}: real time, stopped by {_RUNTIME}"


@vm_check(
    71,
    "hypervisor.io_limits",
    source=f"io.max or blkio.throttle.* of {cgroups.ROOT}, of its cgroup and above",
    remedy="unset quota:vif_* and quota:disk_* of its flavor, QoS of its volume "
    "type, IOReadIOPSMax= and the like of its unit and slices; then openstack "
    "server reboot --hard {}",
)
def io_limits(host: HostSubject, domain: Domain) -> Seen:
    """Nothing limits a VM's network and disks but the policy."""
    for way in domain.xml.iterfind("devices/interface/bandwidth/*"):
        # In kilobytes a second, from Nova's quota:vif_* or set with virsh.
        yield Level.FAILURE, f"bandwidth {way.tag} {way.get('average')} kB/s"
    vm_class = host.class_of(domain)
    asked = vm_class.disk if vm_class else Disk()
    groups = [g.text for g in domain.xml.iterfind("devices/disk/iotune/group_name")]
    if len(groups) > len({*groups}):
        yield Level.FAILURE, "disks share a limit by group_name"
    for disk in domain.disks:
        yield from _of_disk(disk, asked.read_iops or 0, asked.write_iops or 0)
    for limit in domain.xml.iterfind("blkiotune/device/*"):
        if limit.tag not in _NO_LIMITS and (limit.text or "0").strip() != "0":
            yield Level.FAILURE, f"blkiotune {limit.tag} {limit.text}"
    path = host.process_of(domain).path
    for group in cgroups.groups(host.collected, path, "blkio", "io"):
        for name in ("io.max",) if group.version == 2 else LIMITS_V1["blkio"]:
            file = f"{group.directory}/{name}"
            for line in host.collected.text(file).splitlines():
                # 259:3 rbps=max riops=4000, or of version 1 259:3 4000.
                if any(one.partition("=")[2] != "max" for one in line.split()[1:]):
                    yield Level.FAILURE, f"{file}: {line}"


def _of_disk(disk: ET.Element, read: int, write: int) -> Seen:
    limits = {
        limit.tag: int(limit.text or 0)
        for limit in disk.iterfind("iotune/*")
        if (limit.text or "").strip().lstrip("0").isdecimal()
    }
    name = attribute(disk, "target", "dev", "disk")
    least = {"read_iops_sec": read, "write_iops_sec": write}
    least["total_iops_sec"] = read + write
    for limit, value in limits.items():
        if "_max" in limit:
            text = "measurements may show the burst, not the lasting rate"
            yield Level.UNKNOWN, f"{name} {limit} {value}: {text}"
        elif not 0 < least.get(limit, 0) <= value:
            wanted = f"the policy asks for {least.get(limit) or 'none'}"
            yield Level.FAILURE, f"{name} {limit} {value}, {wanted}"
    if disk.find("throttlefilters") is not None:
        yield Level.FAILURE, f"{name} has throttlefilters"
    if not limits and read + write:
        text = "no limit keeps VMs from taking each other's IOPS"
        yield Level.WARNING, f"{name}: {text} (QoS of the volume type)"
