# SPDX-License-Identifier: Apache-2.0
"""A pinned VM uses the fast CPU models, interfaces and disks of KVM and QEMU.

libvirt shows host-model as custom, with the model chosen for the host.
proof.cpu_flags judges missing CPU flags in the guest.

Slow elements: libvirt's Domain XML format.  Queues: QEMU's hw_compat_5_1 gives machine
types up to 5.1 one queue for each disk.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final
from xml.etree import ElementTree as ET

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Cause, Seen, vm_check
from nova_perfvm.measure.checks.guest.nic_vectors import MULTIQUEUE
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import cpu_flags, processes
from nova_perfvm.measure.observed.domains import BESIDE_QEMU, Domain, attribute
from nova_perfvm.measure.observed.nics import MOST_OF_TAP
from nova_perfvm.measure.observed.processes import Role

# QEMU's generic CPU models, and models of CPUs from before 2010.
_NAMES: Final = """
qemu32 qemu64 kvm32 kvm64 486 pentium pentium2 pentium3 coreduo core2duo n270 athlon
phenom Conroe Penryn Opteron_G1 Opteron_G2 Opteron_G3
"""
_POOR: Final = frozenset(_NAMES.split())
_TOLD: Final = {"host-passthrough": "host", "maximum": "max"}
_FAIL, _WARN, _NOTE = Level.FAILURE, Level.WARNING, Level.NOTE
_NIC: Final = "devices/interface"
# Slow elements of a domain's XML.  Without a driver's name libvirt uses vhost if
# the host has it.
_SLOW: Final = (
    (f"{_NIC}/model[@type!='virtio']", _FAIL, "an emulated network card"),
    (f"{_NIC}/driver[@name='qemu']", _FAIL, "QEMU itself moves packets, not vhost"),
    (f"{_NIC}/driver[@txmode='timer']", _WARN, "packets wait for a timer"),
    ("devices/*/driver[@ioeventfd='off']", _WARN, "ioeventfd is off"),
    ("devices/*/driver[@event_idx='off']", _WARN, "event_idx is off"),
    ("devices/*/driver[@iommu='on']", _WARN, "a device behind a vIOMMU"),
    ("devices/iommu", _WARN, "a vIOMMU: each mapping of memory is an exit"),
    ("launchSecurity", _WARN, "encrypted memory: what devices move is copied"),
    ("features/kvm/hidden[@state='on']", _WARN, "KVM's clock and steal are hidden"),
)
_SLOW_DISK: Final = (
    ("driver[@cache='unsafe']", _FAIL, "cache unsafe: flushes are ignored"),
    ("driver[@cache='writethrough']", _WARN, "cache writethrough"),
    ("driver[@cache='directsync']", _WARN, "cache directsync"),
    ("driver[@io='threads']", _WARN, "io threads, not native or io_uring"),
    ("driver[@copy_on_read='on']", _WARN, "copy_on_read: reads cause writes"),
    (".//encryption", _NOTE, "QEMU encrypts it"),
    ("mirror", _NOTE, "a block job copies it"),
)
_FAST_BUSES: Final = ("virtio", "scsi")
# Ubuntu's names of machine types of QEMU 5.1 or before.
_OLD_UBUNTU: Final = re.compile(
    r"-(trusty|utopic|vivid|wily|xenial|yakkety|zesty|artful|bionic|cosmic|disco|eoan"
    r"|focal|groovy)\b"
)
# RHEL's machine type 8.4.0 is QEMU's 5.2.
_VERSION: Final = re.compile(r"-(rhel)?(\d+)\.(\d+)(\.\d+)?$")
_FIRST: Final = {True: (8, 4), False: (5, 2)}


@vm_check(
    28,
    "hypervisor.virtual_cpu",
    source="/proc/PID/cmdline of QEMU",
    remedy="[libvirt]virt_type = kvm and cpu_mode = host-passthrough or host-model "
    "in the host's nova.conf; then openstack server reboot --hard {}",
)
def virtual_cpu(host: HostSubject, domain: Domain) -> Seen:
    """VMs have all vCPUs, the host's CPU and KVM, for libvirt and QEMU."""
    told = processes.options(host.collected, host.process_of(domain))
    machine, *flags = told.get("machine", "").split(",")
    given_here = (f.partition("=")[2] for f in flags if f.startswith("accel="))
    accelerator = told.get("accel") or next(given_here, "tcg")
    if domain.kind != "kvm" or accelerator.partition(",")[0] != "kvm":
        yield Level.FAILURE, f"type {domain.kind}, QEMU runs it on {accelerator}"
    without = "" if domain.xml.find("cpu") is None else "custom"
    mode = attribute(domain.xml, "cpu", "mode", without)
    model = domain.xml.findtext("cpu/model", "").strip()
    given = told.get("cpu", "").partition(",")[0]
    known = mode and given and given == _TOLD.get(mode, given)
    if not known or {model, given} & _POOR:
        shown = f"mode {mode or 'none'}, model {model or 'none'}"
        yield Level.FAILURE, f"CPU of {shown}, of QEMU {given or 'none'}"
    for feature in domain.xml.iterfind("cpu/feature[@policy='disable']"):
        flag = cpu_flags.kernel_name(feature.get("name", ""))
        if flag in cpu_flags.NEEDED & cpu_flags.told(host.collected):
            yield Level.FAILURE, f"{flag} of the host's is taken away"
    number, _, rest = told.get("smp", "").partition(",")
    parts = dict(part.partition("=")[::2] for part in rest.split(","))
    most = parts.get("maxcpus", number)
    if not str(domain.vcpus) == str(domain.most_vcpus) == most:
        shown = f"{domain.vcpus} of {domain.most_vcpus} vCPUs are plugged in"
        yield Level.FAILURE, f"{shown}, QEMU has {most or 'none'}"
    properties = told.get("cpu", "").split(",")
    if "l3-cache=off" in properties and "host-cache-info=on" not in properties:
        # The guest's scheduler then wakes tasks on other vCPUs by interrupts (IPIs).
        yield _WARN, "l3-cache=off: the guest sees no cache that its vCPUs share"
    if machine != domain.machine:
        yield Level.FAILURE, f"machine {domain.machine}, of QEMU {machine or 'none'}"


@vm_check(
    72,
    "hypervisor.virtual_devices",
    source="/proc/PID/task/*/comm of QEMU, /proc/*/comm",
    remedy="look at hw_* of its image, its volume type, [libvirt]disk_cachemodes "
    "and /dev/vhost-net of the host; then openstack server reboot --hard {}",
)
def virtual_devices(host: HostSubject, domain: Domain) -> Seen:
    """Interfaces and disks are fast, with a queue for each vCPU."""
    yield from _slow(domain.xml, _SLOW)
    for part in domain.xml.iterfind(f"{_NIC}/driver/*"):
        for offload in (name for name, value in part.items() if value == "off"):
            yield _FAIL, f"{part.tag} has {offload} off"
    vm_class = host.class_of(domain)
    network = vm_class is not None and vm_class.disk.source == "volume"
    for disk in domain.disks:
        yield from _of_disk(domain, disk, network=network)
    wanted = sum(nic.queues for nic in domain.interfaces if nic.by_kernel)
    threads = host.process_of(domain).of(Role.VHOST)
    if len(threads) < wanted:
        level = Level.UNKNOWN if threads else _FAIL
        yield level, f"{len(threads)} threads of vhost for {wanted} queues"
    allowed = (processes.allowed_cpus(host.collected, one.path) for one in threads)
    nodes = host.nodes_of(frozenset(chain(*allowed)))
    if far := nodes - host.nodes_of(domain.pinned_cpus):
        yield _WARN, f"vhost may run on node {format_cpus(far)}, away from its memory"


def _slow(
    element: ET.Element, table: Iterable[tuple[str, Level, str]]
) -> Iterator[tuple[Level, str]]:
    for path, level, text in table:
        if element.find(path) is not None:
            yield level, text


def _of_disk(domain: Domain, disk: ET.Element, *, network: bool) -> Seen:
    name, bus = (attribute(disk, "target", key) for key in ("dev", "bus"))
    kind, cache = disk.get("type"), attribute(disk, "driver", "cache")
    for level, text in _slow(disk, _SLOW_DISK):
        yield level, f"{name}: {text}"
    if bus not in _FAST_BUSES:
        yield _FAIL, f"{name} on bus {bus}"
    device = domain.serving(disk)
    model = "" if device is None else device.get("model", "")
    if bus == "scsi" and not model.startswith("virtio"):
        # libvirt's default on x86 (qemuDomainDefaultSCSIControllerModel).
        yield _FAIL, f"{name} on a SCSI controller of model {model or 'lsilogic'}"
    if cache in {"", "writeback"} and kind not in BESIDE_QEMU:
        # Ceph's client has a cache of its own, which is not the host's page cache.
        level = _WARN if kind == "network" else _FAIL
        yield level, f"{name} has cache writeback"
    # Nova writes the volume's ID to serial, and no serial for its own local images
    # (nova.virt.libvirt.volume.volume, LibvirtBaseVolumeDriver.get_config).
    if network and not disk.findtext("serial") and not _is_config_drive(disk):
        yield _FAIL, f"{name} is a disk of Nova's own, not a volume"
    if network and attribute(disk, "backingStore", "type"):
        yield _FAIL, f"{name} has a backing file"
    queues = "" if device is None else attribute(device, "driver", "queues")
    number = int(queues) if queues else _queues_by_machine(domain)
    if number < domain.vcpus:
        level = _FAIL if number == 1 else _WARN
        yield level, f"{name} has {number} queues (machine {domain.machine})"


def _is_config_drive(disk: ET.Element) -> bool:
    # With [DEFAULT]config_drive_format=vfat the config drive is a disk, not a CD.
    return any(
        attribute(disk, "source", key).endswith("disk.config")
        for key in ("file", "dev", "name")
    )


def _queues_by_machine(domain: Domain) -> int:
    """Return the default number of queues of a disk for the machine type."""
    match = _VERSION.search(domain.machine)
    old = _OLD_UBUNTU.search(domain.machine) is not None
    if match:
        old = (int(match[2]), int(match[3])) < _FIRST[bool(match[1])]
    return 1 if old else domain.vcpus


def _promised_queues(host: HostSubject) -> Iterator[Domain]:
    for domain in host.domains:
        vm_class = host.class_of(domain)
        if vm_class is not None and vm_class.vif_multiqueue:
            yield domain


@vm_check(
    70,
    "hypervisor.interface_queues",
    vms=_promised_queues,
    source="driver queues= of its interfaces",
    remedy=MULTIQUEUE,
)
def interface_queues(_host: HostSubject, domain: Domain) -> Seen:
    """Each interface has a queue for each vCPU."""
    if domain.kind != "kvm" or not domain.interfaces:
        reason = f"Nova gives queues to interfaces of KVM only, this is {domain.kind}"
        raise NotReadError(domain.source, reason)
    for nic in domain.interfaces:
        name = nic.target or nic.mac
        if nic.kind in {"hostdev", "vdpa"}:
            yield Cause.NOTHING_TO_JUDGE, f"hardware decides of {nic.kind} {name}"
        elif nic.model != "virtio":
            reason = f"no rule for the model of {name}, {nic.model or 'none'}"
            yield NotReadError(domain.source, reason)
        else:
            few = nic.queues < min(domain.vcpus, MOST_OF_TAP)
            shown = f"{name} has {nic.queues} queues for {domain.vcpus} vCPUs"
            yield Level.FAILURE if few else Level.OK, shown
