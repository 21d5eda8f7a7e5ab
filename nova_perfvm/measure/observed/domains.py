# SPDX-License-Identifier: Apache-2.0
"""The VMs of a host in libvirt's XML: ``virsh dumpxml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError
from nova_perfvm.measure.collect.collected import Collected, NotReadError

LIST: Final = "virsh -r list --all --uuid"
# Nova writes some ten thousand characters.
MOST_CHARACTERS: Final = 4 * 1024 * 1024

# The namespace of versions 1.0 and 1.1.
_NOVA: Final = "{http://openstack.org/xmlns/libvirt/nova/1."
# libvirt's units of memory, in bytes.
_UNITS: Final[Mapping[str, int]] = {"b": 1, "bytes": 1} | {
    f"{letter}{suffix}": base**power
    for power, letter in enumerate("kmgt", 1)
    for suffix, base in (("b", 1000), ("ib", 1024), ("", 1024))
}
# A lun is a disk with SCSI passthrough.
_DISKS: Final = ("disk", "lun")
# Kinds of disks served by another process or by hardware.
BESIDE_QEMU: Final = ("vhostuser", "vhostvdpa")
# Kinds of interfaces served by a userspace switch or hardware, not by the kernel.
_BESIDE_KERNEL: Final = ("vhostuser", "vdpa", "hostdev")


def dumpxml(uuid: str) -> str:
    """Return the command that prints a domain's XML."""
    return f"virsh -r dumpxml {uuid}"


class Binding(NamedTuple):
    """The host nodes that memory may come from.

    :ivar mode: strict, preferred, interleave...
    :ivar nodes: NUMA nodes of the host
    """

    mode: str
    nodes: frozenset[int]


class Interface(NamedTuple):
    """A network interface of a VM.

    :ivar kind: bridge, ethernet, network, hostdev, vhostuser, vdpa...
    :ivar queues: from the driver element, 1 by default
    :ivar target: the interface's device on the host; empty without one
    """

    kind: str
    model: str
    queues: int
    target: str
    mac: str

    @property
    def by_kernel(self) -> bool:
        """Whether vhost in the host's kernel serves it."""
        return self.model == "virtio" and self.kind not in _BESIDE_KERNEL


@dataclass(frozen=True)
class NovaMetadata:
    """Nova's metadata in a domain's XML.

    :ivar extra_specs: the flavor's extra specs; None from an older Nova
    :ivar image_properties: None from an older Nova
    :ivar image: ID of the image that the server was booted from; None for a volume
    """

    name: str
    flavor: str
    extra_specs: Mapping[str, str] | None
    image_properties: Mapping[str, str] | None
    image: str | None = None


class Domain:
    """One domain.

    :ivar kind: kvm; qemu is emulation
    :ivar running: False if the XML describes a domain that is shut off
    :ivar most_vcpus: the maximum number of vCPUs, including hot-pluggable ones
    :ivar current_kb: memory left by the balloon, in KiB
    :ivar cpus: CPUs of vCPUs without a pin; None for all CPUs
    :ivar vcpupins: {vCPU: CPUs}
    :ivar iothreadpins: {number of the I/O thread: CPUs}
    :ivar memory: binding of the whole memory; None without one
    :ivar memnodes: {guest NUMA node: binding of the node's memory}
    :ivar cells: {guest NUMA node: vCPUs}; empty without guest NUMA nodes
    :ivar cells_kb: {guest NUMA node: memory in KiB}
    :ivar page_sizes_kb: sizes of requested huge pages in KiB, 0 for the host's
        default size; empty for small pages
    :ivar nova: None if Nova did not create the domain
    :ivar xml: the whole XML, in which checks look for limits
    """

    def __init__(self, xml: ET.Element) -> None:
        """Parse a domain's XML.

        :raises ValueError: when an element or number is missing or malformed
        :raises CPUSetError: when a list of CPUs is malformed
        """
        vcpu, memory = xml.find("vcpu"), xml.find("memory")
        if vcpu is None or memory is None:
            raise ValueError("the element vcpu or memory is missing")
        current = next(xml.iterfind("currentMemory"), memory)
        cells = {
            int(cell.get("id") or index): cell
            for index, cell in enumerate(xml.iterfind("cpu/numa/cell"))
        }
        nodes = xml.iterfind("numatune/memnode")
        self.xml = xml
        self.uuid = _text(xml, "uuid")
        self.name = _text(xml, "name")
        self.kind = xml.get("type", "")
        self.running = xml.get("id") is not None
        self.machine = attribute(xml, "os/type", "machine")
        self.vcpus = int(vcpu.get("current") or vcpu.text or "")
        self.most_vcpus = int(vcpu.text or "")
        self.memory_kb = _kib(memory, memory.text)
        self.current_kb = _kib(current, current.text)
        self.cpus = None if vcpu.get("cpuset") is None else _cpus(vcpu)
        self.vcpupins = _pins(xml, "vcpupin", "vcpu")
        self.emulatorpin = next(map(_cpus, xml.iterfind("cputune/emulatorpin")), None)
        self.iothreads = int(_text(xml, "iothreads") or 0)
        self.iothreadpins = _pins(xml, "iothreadpin", "iothread")
        self.memory = next(map(_binding, xml.iterfind("numatune/memory")), None)
        self.memnodes = {int(n.get("cellid", "")): _binding(n) for n in nodes}
        self.cells = {number: _cpus(cell, "cpus") for number, cell in cells.items()}
        self.cells_kb = {
            n: _kib(one, one.get("memory", "0")) for n, one in cells.items()
        }
        self.page_sizes_kb = _page_sizes(xml)
        self.interfaces = [_interface(one) for one in xml.iterfind("devices/interface")]
        self.nova = _nova(xml)

    @property
    def disks(self) -> list[ET.Element]:
        """The domain's disks, without CDs such as Nova's config drive."""
        disks = self.xml.iterfind("devices/disk")
        return [one for one in disks if one.get("device", "disk") in _DISKS]

    def serving(self, disk: ET.Element) -> ET.Element | None:
        """Return the device whose thread serves a disk; None if unknown.

        The controller serves a SCSI disk; another disk is the device itself.
        """
        if attribute(disk, "target", "bus") != "scsi":
            return disk
        wanted = attribute(disk, "address", "controller", "0")
        found = self.xml.iterfind("devices/controller[@type='scsi']")
        return next((one for one in found if one.get("index", "0") == wanted), None)

    @property
    def source(self) -> str:
        """The command that printed the XML."""
        return dumpxml(self.uuid)

    @property
    def pins(self) -> dict[int, int]:
        """{vCPU: CPU} of vCPUs pinned to exactly one CPU."""
        pins = self.vcpupins.items()
        return {vcpu: min(cpus) for vcpu, cpus in pins if len(cpus) == 1}

    @property
    def pinned_cpus(self) -> frozenset[int]:
        """The CPUs of all vCPU pins."""
        return frozenset().union(*self.vcpupins.values())

    @property
    def cell_cpus(self) -> dict[int, frozenset[int]]:
        """{guest NUMA node: CPUs that the node's vCPUs are pinned to}."""
        none: frozenset[int] = frozenset()
        return {
            cell: none.union(*(self.vcpupins.get(vcpu, none) for vcpu in vcpus))
            for cell, vcpus in self.cells.items()
        }

    @property
    def all_pinned(self) -> bool:
        """Whether each vCPU is pinned to exactly one CPU."""
        return self.vcpus > 0 and len(self.pins) == self.vcpus


def uuids(collected: Collected) -> tuple[str, ...]:
    """Return the UUIDs of all domains.

    :raises NotReadError: when ``virsh list`` was not run, or failed
    """
    return tuple(collected.output(LIST).split())


def read(collected: Collected, uuid: str) -> Domain:
    """Return the domain with a UUID.

    :raises NotReadError: when the XML was not read, or is malformed
    """
    command = dumpxml(uuid)
    text = collected.output(command)
    try:
        return Domain(_parse(text))
    except (ET.ParseError, CPUSetError, ValueError) as exc:
        raise NotReadError(command, f"it cannot be understood: {exc}") from exc


def dirty_rate(collected: Collected, uuid: str) -> tuple[float, float] | None:
    """Return QEMU's last dirty rate in MiB/s, and its seconds; None if not measured."""
    done = collected.commands.get(f"virsh -r domstats --dirtyrate {uuid}")
    found = dict(re.findall(r"dirtyrate\.(\w+)=(\d+)", done.stdout)) if done else {}
    period_s = float(found.get("calc_period", 0))
    rate = found.get("megabytes_per_second")
    # 2 is VIR_DOMAIN_DIRTYRATE_MEASURED; others: unstarted (0) or measuring (1).
    if found.get("calc_status") != "2" or not period_s or rate is None:
        return None
    # QEMU rounds down to whole MiB.
    return float(rate) + 0.5, period_s


def attribute(element: ET.Element, path: str, name: str, default: str = "") -> str:
    """Return an attribute of the first element at `path`; `default` without one."""
    found = element.find(path)
    return default if found is None else found.get(name, default)


def _parse(text: str) -> ET.Element:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it is longer than {MOST_CHARACTERS} characters")
    # libvirt writes neither; entity expansion can exhaust memory (billion laughs).
    if re.search(r"<!(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise ValueError("it declares a document type")
    root = ET.fromstring(text)  # noqa: S314
    if root.tag != "domain":
        raise ValueError(f"its root is {root.tag!r:.50}, not 'domain'")
    return root


def _text(element: ET.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _cpus(element: ET.Element, name: str = "cpuset") -> frozenset[int]:
    return cpuset.parse(element.get(name, ""))


def _pins(root: ET.Element, tag: str, name: str) -> dict[int, frozenset[int]]:
    pins = root.findall(f"cputune/{tag}")
    return {int(pin.get(name, "")): _cpus(pin) for pin in pins}


def _binding(element: ET.Element) -> Binding:
    # libvirt's documentation: the default mode is strict.
    return Binding(element.get("mode", "strict"), _cpus(element, "nodeset"))


def _kib(element: ET.Element, number: str | None) -> int:
    """Convert a number in the element's unit to KiB."""
    unit = element.get("unit", "KiB").lower()
    if unit not in _UNITS:
        raise ValueError(f"unknown unit of memory: {unit!r:.50}")
    return int(number or "") * _UNITS[unit] // 1024


def _page_sizes(root: ET.Element) -> tuple[int, ...]:
    if root.find("memoryBacking/hugepages") is None:
        return ()
    pages = root.findall("memoryBacking/hugepages/page")
    return tuple(sorted({_kib(page, page.get("size")) for page in pages})) or (0,)


def _interface(element: ET.Element) -> Interface:
    return Interface(
        kind=element.get("type", ""),
        model=attribute(element, "model", "type"),
        queues=int(attribute(element, "driver", "queues", "1")),
        target=attribute(element, "target", "dev"),
        mac=attribute(element, "mac", "address"),
    )


def _nova(root: ET.Element) -> NovaMetadata | None:
    instance = root.find("metadata/{*}instance")
    if instance is None or not instance.tag.startswith(_NOVA):
        return None
    return NovaMetadata(
        name=_text(instance, "{*}name"),
        flavor=attribute(instance, "{*}flavor", "name"),
        extra_specs=_named(instance.find("{*}flavor/{*}extraSpecs")),
        image_properties=_named(instance.find("{*}image/{*}properties")),
        image=attribute(instance, "{*}root", "uuid") or None,
    )


def _named(element: ET.Element | None) -> dict[str, str] | None:
    """Return {name: text} of an element's children; None without the element."""
    if element is None:
        return None
    named = ((child.get("name"), child.text) for child in element)
    return {name: (text or "").strip() for name, text in named if name}
