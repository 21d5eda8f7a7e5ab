# SPDX-License-Identifier: Apache-2.0
"""The VMs of a host as libvirt describes them: ``virsh dumpxml``."""

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

# Of version 1.0 or 1.1.
_NOVA: Final = "{http://openstack.org/xmlns/libvirt/nova/1."
# libvirt's units of memory, in bytes.
_UNITS: Final[Mapping[str, int]] = {"b": 1, "bytes": 1} | {
    f"{letter}{suffix}": base**power
    for power, letter in enumerate("kmgt", 1)
    for suffix, base in (("b", 1000), ("ib", 1024), ("", 1024))
}
# lun is a disk whose SCSI commands pass through.
_DISKS: Final = ("disk", "lun")
# Kinds of disks that another process or hardware serves.
BESIDE_QEMU: Final = ("vhostuser", "vhostvdpa")
# Kinds of interfaces that a switch in user space or hardware serves, not the kernel.
_BESIDE_KERNEL: Final = ("vhostuser", "vdpa", "hostdev")


def dumpxml(uuid: str) -> str:
    """Return the command that describes a domain."""
    return f"virsh -r dumpxml {uuid}"


class Binding(NamedTuple):
    """Where memory may come from.

    :ivar mode: strict, preferred, interleave...
    :ivar nodes: NUMA nodes of the host
    """

    mode: str
    nodes: frozenset[int]


class Interface(NamedTuple):
    """A network interface of a VM.

    :ivar kind: bridge, ethernet, network, hostdev, vhostuser, vdpa...
    :ivar queues: as the driver element says, 1 if it says nothing
    :ivar target: the device on the host; empty if it has none
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
    """What Nova has noted in a domain.

    :ivar extra_specs: of the flavor; None of a Nova that did not write them
    :ivar image_properties: None of a Nova that did not write them
    :ivar image: ID of the image that it was booted from; None for a volume
    """

    name: str
    flavor: str
    extra_specs: Mapping[str, str] | None
    image_properties: Mapping[str, str] | None
    image: str | None = None


class Domain:
    """One domain.

    :ivar kind: kvm; qemu is emulation
    :ivar running: the XML of one that does not run says what is to be
    :ivar most_vcpus: those that may be plugged in while it runs, too
    :ivar current_kb: what its balloon leaves it
    :ivar cpus: those that its vCPUs without a pin may use; None: all
    :ivar vcpupins: {vCPU: CPUs}
    :ivar iothreadpins: {number of the I/O thread: CPUs}
    :ivar memory: where all its memory may come from; None: from anywhere
    :ivar memnodes: {its NUMA node: where its memory may come from}
    :ivar cells: {its NUMA node: vCPUs}; empty if it shows none
    :ivar cells_kb: {its NUMA node: memory}
    :ivar page_sizes_kb: of huge pages that it asks for, 0 for the host's default
        size; empty if it asks for none
    :ivar nova: None if Nova did not make it
    :ivar xml: all of it, of which checks look for what limits it
    """

    def __init__(self, xml: ET.Element) -> None:
        """Read its XML.

        :raises ValueError: when it cannot be understood
        :raises CPUSetError: when that is a list of CPUs
        """
        vcpu, memory = xml.find("vcpu"), xml.find("memory")
        if vcpu is None or memory is None:
            raise ValueError("it has no element vcpu, or none of memory")
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
        """Its disks, but for CDs such as Nova's config drive."""
        disks = self.xml.iterfind("devices/disk")
        return [one for one in disks if one.get("device", "disk") in _DISKS]

    def serving(self, disk: ET.Element) -> ET.Element | None:
        """Return the device whose thread serves a disk; None if none is told.

        A SCSI disk has its controller; any other is such a device itself.
        """
        if attribute(disk, "target", "bus") != "scsi":
            return disk
        wanted = attribute(disk, "address", "controller", "0")
        found = self.xml.iterfind("devices/controller[@type='scsi']")
        return next((one for one in found if one.get("index", "0") == wanted), None)

    @property
    def source(self) -> str:
        """The command that told it."""
        return dumpxml(self.uuid)

    @property
    def pins(self) -> dict[int, int]:
        """{vCPU: CPU} of the vCPUs that have one CPU."""
        pins = self.vcpupins.items()
        return {vcpu: min(cpus) for vcpu, cpus in pins if len(cpus) == 1}

    @property
    def pinned_cpus(self) -> frozenset[int]:
        """All CPUs that its pins name."""
        return frozenset().union(*self.vcpupins.values())

    @property
    def cell_cpus(self) -> dict[int, frozenset[int]]:
        """{its NUMA node: CPUs that pins of its vCPUs name}."""
        none: frozenset[int] = frozenset()
        return {
            cell: none.union(*(self.vcpupins.get(vcpu, none) for vcpu in vcpus))
            for cell, vcpus in self.cells.items()
        }

    @property
    def all_pinned(self) -> bool:
        """Whether each vCPU has a CPU."""
        return self.vcpus > 0 and len(self.pins) == self.vcpus


def uuids(collected: Collected) -> tuple[str, ...]:
    """Return the UUIDs of all domains.

    :raises NotReadError: when libvirt could not be asked
    """
    return tuple(collected.output(LIST).split())


def read(collected: Collected, uuid: str) -> Domain:
    """Return a domain.

    :raises NotReadError: when it was not read, or cannot be understood
    """
    command = dumpxml(uuid)
    text = collected.output(command)
    try:
        return Domain(_parse(text))
    except (ET.ParseError, CPUSetError, ValueError) as exc:
        raise NotReadError(command, f"it cannot be understood: {exc}") from exc


def dirty_rate(collected: Collected, uuid: str) -> tuple[float, float] | None:
    """Return QEMU's last dirty rate, in MiB per second, and the seconds it covers."""
    done = collected.commands.get(f"virsh -r domstats --dirtyrate {uuid}")
    found = dict(re.findall(r"dirtyrate\.(\w+)=(\d+)", done.stdout)) if done else {}
    period_s = float(found.get("calc_period", 0))
    rate = found.get("megabytes_per_second")
    # VIR_DOMAIN_DIRTYRATE_MEASURED; else it is under way, or there was none.
    if found.get("calc_status") != "2" or not period_s or rate is None:
        return None
    # It is rounded down.
    return float(rate) + 0.5, period_s


def attribute(element: ET.Element, path: str, name: str, default: str = "") -> str:
    """Return an attribute of the first element at a path; the default without it."""
    found = element.find(path)
    return default if found is None else found.get(name, default)


def _parse(text: str) -> ET.Element:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it is longer than {MOST_CHARACTERS} characters")
    # libvirt writes neither; entities are how XML eats a machine's memory.
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
    # Without a mode it is strict, as libvirt's documentation says.
    return Binding(element.get("mode", "strict"), _cpus(element, "nodeset"))


def _kib(element: ET.Element, number: str | None) -> int:
    """Return an amount of memory in KiB, which is in an element's unit."""
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
    """Return {name: text} of the children of an element, None if it is not there."""
    if element is None:
        return None
    named = ((child.get("name"), child.text) for child in element)
    return {name: (text or "").strip() for name, text in named if name}
