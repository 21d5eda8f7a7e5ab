# SPDX-License-Identifier: Apache-2.0
"""Nothing limits a pinned VM's network and disks that its policy has not asked for.

A policy's IOPS are what a VM gets at least; a limit on a disk may be there if it is
no lower (doc/source/admin/disk-consolidation.rst).
"""

from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Check
from nova_perfvm.measure.checks.host_flaws import Flaw, of_flaws
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collector import LIMITS_V1
from nova_perfvm.measure.observed import cgroups
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.policy.classes import Disk

_NO_LIMITS: Final = frozenset({"path", "weight"})


def flaws(subject: HostSubject, domain: Domain) -> Iterator[Flaw]:
    """Look at the limits of interfaces and disks, and at those of cgroups."""
    for way in domain.xml.iterfind("devices/interface/bandwidth/*"):
        # Of libvirt kilobytes a second: Nova's quota:vif_*, or set by hand.
        yield Level.FAILURE, f"bandwidth {way.tag} {way.get('average')} kB/s"
    vm_class = subject.class_of(domain)
    asked = vm_class.disk if vm_class else Disk()
    groups = [g.text for g in domain.xml.iterfind("devices/disk/iotune/group_name")]
    if len(groups) > len({*groups}):
        yield Level.FAILURE, "disks share a limit by group_name"
    for disk in domain.xml.iterfind("devices/disk[@device='disk']"):
        yield from _of_disk(disk, asked.read_iops or 0, asked.write_iops or 0)
    for limit in domain.xml.iterfind("blkiotune/device/*"):
        if limit.tag not in _NO_LIMITS and (limit.text or "0").strip() != "0":
            yield Level.FAILURE, f"blkiotune {limit.tag} {limit.text}"
    path = subject.process_of(domain).path
    for group in cgroups.groups(subject.collected, path, "blkio", "io"):
        for name in ("io.max",) if group.version == 2 else LIMITS_V1["blkio"]:
            file = f"{group.directory}/{name}"
            for line in subject.collected.text(file).splitlines():
                # 259:3 rbps=max riops=4000, or of version 1 259:3 4000.
                if any(one.partition("=")[2] != "max" for one in line.split()[1:]):
                    yield Level.FAILURE, f"{file}: {line}"


def _of_disk(disk: ET.Element, read: int, write: int) -> Iterator[Flaw]:
    limits = {
        limit.tag: int(limit.text or 0)
        for limit in disk.iterfind("iotune/*")
        if (limit.text or "").strip().lstrip("0").isdigit()
    }
    target = disk.find("target")
    name = "disk" if target is None else target.get("dev")
    least = {"read_iops_sec": read, "write_iops_sec": write}
    least["total_iops_sec"] = read + write
    for limit, value in limits.items():
        if "_max" in limit:
            text = "what is measured may be the burst, not what stays"
            yield Level.UNKNOWN, f"{name} {limit} {value}: {text}"
        elif not 0 < least.get(limit, 0) <= value:
            wanted = f"the policy asks for {least.get(limit) or 'none'}"
            yield Level.FAILURE, f"{name} {limit} {value}, {wanted}"
    if disk.find("throttlefilters") is not None:
        yield Level.FAILURE, f"{name} has throttlefilters"
    if not limits and read + write:
        text = "no limit keeps VMs from taking each other's IOPS"
        yield Level.WARNING, f"{name}: {text} (QoS of the volume type)"


CHECK = Check(
    71,
    "hypervisor.io_limits",
    "Nothing limits a VM's network and disks but the policy",
    of_flaws(
        flaws,
        "no limit but the policy's IOPS",
        f"io.max or blkio.throttle.* of {cgroups.ROOT}, its cgroup and those above",
        "unset quota:vif_* and quota:disk_* of the flavor, QoS of the volume type, and "
        "IOReadIOPSMax= and the like of its unit and slices",
    ),
)
