# SPDX-License-Identifier: Apache-2.0
"""A pinned VM's interfaces and disks are as fast as QEMU has them.

Sources of what is slow: libvirt's Domain XML format; of queues QEMU's hw_compat_5_1,
by which machine types up to 5.1 have one queue for each disk.
"""

import re
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree as ET

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Check
from nova_perfvm.measure.checks.host_flaws import Flaw, of_flaws
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import Role

_FAIL, _WARN, _NOTE = Level.FAILURE, Level.WARNING, Level.NOTE
_NIC: Final = "devices/interface"
_DISK: Final = "devices/disk[@device='disk']"
# Elements that cost, wherever they are.  Without a driver's name libvirt takes vhost
# if it can.
_SLOW: Final = (
    (f"{_NIC}/model[@type!='virtio']", _FAIL, "an emulated network card"),
    (f"{_NIC}/driver[@name='qemu']", _FAIL, "QEMU itself moves packets, not vhost"),
    (f"{_NIC}/driver[@txmode='timer']", _WARN, "packets wait for a timer"),
    (f"{_NIC}/driver[@ioeventfd='off']", _WARN, "ioeventfd is off"),
    (f"{_NIC}/driver[@event_idx='off']", _WARN, "event_idx is off"),
    ("devices/*/driver[@iommu='on']", _WARN, "a device behind a vIOMMU"),
    ("devices/iommu", _WARN, "a vIOMMU: each mapping of memory is an exit"),
    ("launchSecurity", _WARN, "encrypted memory: what devices move is copied"),
    ("features/kvm/hidden[@state='on']", _WARN, "KVM's clock and steal are hidden"),
    (f"{_DISK}/driver[@cache='unsafe']", _FAIL, "cache unsafe: flushes are ignored"),
    (f"{_DISK}/driver[@cache='writethrough']", _WARN, "cache writethrough"),
    (f"{_DISK}/driver[@cache='directsync']", _WARN, "cache directsync"),
    (f"{_DISK}/driver[@io='threads']", _WARN, "io threads, not native or io_uring"),
    (f"{_DISK}//encryption", _NOTE, "QEMU encrypts a disk"),
    (f"{_DISK}/mirror", _NOTE, "a block job copies a disk"),
)
_FAST_BUSES: Final = ("virtio", "scsi")
# Interfaces that another process or hardware serves, and such disks.
_OTHERS: Final = ("vhostuser", "vdpa", "hostdev", "vhostvdpa")
# Ubuntu's names of machine types of QEMU 5.1 or before.
_OLD_UBUNTU: Final = re.compile(
    r"-(trusty|utopic|vivid|wily|xenial|yakkety|zesty|artful|bionic|cosmic|disco|eoan"
    r"|focal|groovy)\b"
)
# RHEL's machine type 8.4.0 is QEMU's 5.2.
_VERSION: Final = re.compile(r"-(rhel)?(\d+)\.(\d+)(\.\d+)?$")
_FIRST: Final = {True: (8, 4), False: (5, 2)}


def flaws(subject: HostSubject, domain: Domain) -> Iterator[Flaw]:
    """Look at each interface and disk, and at vhost's threads."""
    for path, level, text in _SLOW:
        if domain.xml.find(path) is not None:
            yield level, text
    for part in domain.xml.iterfind(f"{_NIC}/driver/*"):
        for offload in (name for name, value in part.items() if value == "off"):
            yield _FAIL, f"{part.tag} has {offload} off"
    vm_class = subject.class_of(domain)
    network = vm_class is not None and vm_class.disk.source == "volume"
    for disk in domain.xml.iterfind(_DISK):
        yield from _of_disk(domain, disk, network=network)
    wanted = sum(
        nic.queues
        for nic in domain.interfaces
        if nic.model == "virtio" and nic.kind not in _OTHERS
    )
    seen = len(subject.process_of(domain).of(Role.VHOST))
    if seen < wanted:
        level = Level.UNKNOWN if seen else _FAIL
        yield level, f"{seen} threads of vhost for {wanted} queues"


def _of_disk(domain: Domain, disk: ET.Element, *, network: bool) -> Iterator[Flaw]:
    def get(path: str, name: str) -> str:
        found = disk.find(path)
        return "" if found is None else found.get(name, "")

    name, bus, kind = get("target", "dev"), get("target", "bus"), disk.get("type")
    if bus not in _FAST_BUSES:
        yield _FAIL, f"{name} on bus {bus}"
    if (get("driver", "cache") or "writeback") == "writeback" and kind not in _OTHERS:
        # Ceph's client has a cache of its own, which is not the host's page cache.
        level = _WARN if kind == "network" else _FAIL
        yield level, f"{name} has cache writeback"
    if network and domain.uuid in get("source", "file").split("/"):
        yield _FAIL, f"{name} is a file of Nova's, not a volume"
    if network and get("backingStore", "type"):
        yield _FAIL, f"{name} has a backing file"
    queues = get("driver", "queues")
    if bus == "scsi":
        found = domain.xml.find("devices/controller[@type='scsi']/driver")
        queues = "" if found is None else found.get("queues", "")
    number = int(queues) if queues else _queues_by_machine(domain)
    if number < domain.vcpus:
        level = _FAIL if number == 1 else _WARN
        yield level, f"{name} has {number} queues (machine {domain.machine})"


def _queues_by_machine(domain: Domain) -> int:
    """Return the queues of a disk that is not told how many."""
    match = _VERSION.search(domain.machine)
    old = _OLD_UBUNTU.search(domain.machine) is not None
    if match:
        old = (int(match[2]), int(match[3])) < _FIRST[bool(match[1])]
    return 1 if old else domain.vcpus


CHECK = Check(
    72,
    "hypervisor.virtual_devices",
    "A VM's interfaces and disks are fast ones",
    of_flaws(
        flaws,
        "virtio, vhost, offloads, no page cache of the host, a queue for each vCPU",
        "/proc/PID/task/*/comm of QEMU, /proc/*/comm",
        "look at hw_* of its image, its volume type, [libvirt]disk_cachemodes, and for "
        "/dev/vhost-net on the host",
    ),
)
