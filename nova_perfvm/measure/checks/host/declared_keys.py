# SPDX-License-Identifier: Apache-2.0
"""The domain's XML shows what the keys of the VM's class declare.

Each row of the table is a key, its elements in the XML by libvirt's Domain XML format,
and what they must show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

from nova_perfvm import cpuset
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Seen, vm_check
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.observed.domains import Domain, attribute
from nova_perfvm.policy import VMClass
from nova_perfvm.policy.guest import realtime_vcpus


class _Row(NamedTuple):
    """One key of a class.

    :ivar wanted: the declared value as the XML shows it; None if the class declares
        nothing
    :ivar seen: the values in the XML, one for each device; empty for an element that
        the domain lacks
    """

    key: str
    wanted: Callable[[VMClass, Domain], str | None]
    seen: Callable[[Domain], list[str]]


def _of(path: str, name: str) -> Callable[[Domain], list[str]]:
    """Return a reader of an attribute of each element at a path."""
    return lambda domain: [one.get(name, "") for one in domain.xml.iterfind(path)]


def _there(path: str) -> Callable[[Domain], list[str]]:
    return lambda domain: ["on" if domain.xml.find(path) is not None else "off"]


def _buses(domain: Domain) -> list[str]:
    return [f"{_bus(disk)}{_model(domain, disk)}" for disk in domain.disks]


def _bus(disk: ET.Element) -> str:
    return attribute(disk, "target", "bus")


def _model(domain: Domain, disk: ET.Element) -> str:
    device = domain.serving(disk) if _bus(disk) == "scsi" else None
    return "" if device is None else f" of {device.get('model', 'lsilogic')}"


def _packed(domain: Domain) -> list[str]:
    nics = domain.xml.iterfind("devices/interface/model[@type='virtio']/..")
    return [attribute(nic, "driver", "packed", "off") for nic in nics]


def _realtime(domain: Domain) -> list[str]:
    found: set[int] = set()
    for one in domain.xml.iterfind("cputune/vcpusched[@scheduler='fifo']"):
        found |= cpuset.parse(one.get("vcpus", ""))
    return [cpuset.format_cpus(found)]


def _wanted_realtime(vm_class: VMClass, domain: Domain) -> str | None:
    if vm_class.realtime is None:
        return None
    found = realtime_vcpus(vm_class.realtime.mask, domain.vcpus)
    return cpuset.format_cpus(found or ())


def _sockets(vm_class: VMClass, _domain: Domain) -> str | None:
    """Return the sockets that the policy wants; None if it wants no number."""
    topology = vm_class.guest_topology
    return str(vm_class.cells_per_vm) if topology and topology.sockets else None


def _threads(vm_class: VMClass, _domain: Domain) -> str | None:
    topology = vm_class.guest_topology
    return str(topology.threads) if topology and topology.threads else None


def _bits(vm_class: VMClass, _domain: Domain) -> str | None:
    one = vm_class.maxphysaddr
    return None if one is None else " ".join([one.mode, str(one.bits or "")]).strip()


def _shown_bits(domain: Domain) -> list[str]:
    shown = domain.xml.iterfind("cpu/maxphysaddr")
    return [f"{one.get('mode')} {one.get('bits', '')}".strip() for one in shown]


_TOPOLOGY: Final = "cpu/topology"
_DISK_BUSES: Final = {"virtio": "virtio", "scsi": "scsi of virtio-scsi"}
_ROWS: Final = (
    _Row("guest_topology.sockets", _sockets, _of(_TOPOLOGY, "sockets")),
    _Row("guest_topology.threads", _threads, _of(_TOPOLOGY, "threads")),
    _Row(
        "locked_memory",
        lambda vm_class, _: "on" if vm_class.locked_memory else None,
        _there("memoryBacking/locked"),
    ),
    _Row("packed_ring", lambda c, _: "on" if c.packed_ring else None, _packed),
    _Row(
        "pmu",
        lambda c, _: None if c.pmu is None else {True: "on", False: "off"}[c.pmu],
        _of("features/pmu", "state"),
    ),
    _Row("realtime", _wanted_realtime, _realtime),
    _Row("maxphysaddr", _bits, _shown_bits),
    _Row("disk.bus", lambda c, _: _DISK_BUSES.get(c.disk.bus or ""), _buses),
)


def differences(vm_class: VMClass, domain: Domain) -> Iterator[tuple[Level, str]]:
    """Yield each key that the class declares, and whether the XML shows it."""
    for row in _ROWS:
        wanted = row.wanted(vm_class, domain)
        if wanted is None:
            continue
        seen = row.seen(domain)
        shown = ", ".join(sorted(set(seen))) or "not there"
        level = Level.OK if set(seen) == {wanted} else Level.FAILURE
        yield (
            level,
            f"{row.key}: {shown}"
            + ("" if level is Level.OK else f", declared {wanted}"),
        )


def _of_a_class(host: HostSubject) -> Iterator[Domain]:
    return (domain for domain in host.domains if host.class_of(domain))


@vm_check(
    29,
    "hypervisor.declared_keys",
    vms=_of_a_class,
    source="its flavor and image",
    remedy="openstack perfvm flavor sync, image sync; then openstack server resize "
    "--flavor FLAVOR {}, or a new server of the image, as its keys are embedded",
)
def declared_keys(host: HostSubject, domain: Domain) -> Seen:
    """Domains agree with the keys of their class."""
    vm_class = host.class_of(domain)
    if vm_class is not None:
        yield from differences(vm_class, domain)
