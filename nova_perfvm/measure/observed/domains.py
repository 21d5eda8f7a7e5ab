# SPDX-License-Identifier: Apache-2.0
"""The VMs of a host as libvirt describes them: ``virsh dumpxml``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError
from nova_perfvm.measure.collect.collected import Collected, NotReadError

LIST: Final = "virsh -r list --all --uuid"
# Nova writes some ten thousand characters.
MOST_CHARACTERS: Final = 4 * 1024 * 1024

_NOVA: Final = "{http://openstack.org/xmlns/libvirt/nova/1.1}"
_OLD_NOVA: Final = "{http://openstack.org/xmlns/libvirt/nova/1.0}"
# libvirt's units of memory, in bytes.
_UNITS: Final[Mapping[str, int]] = (
    {"b": 1, "bytes": 1}
    | {f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)}
    | {f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)}
    | {letter: 1024**power for power, letter in enumerate("kmgt", 1)}
)


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
    mac: str = ""


class DomainDisk(NamedTuple):
    """A disk of a VM.

    :ivar queues: None if QEMU chooses
    :ivar iothread: the number of the thread that serves it, None for QEMU's main one
    """

    target: str
    bus: str
    queues: int | None
    iothread: int | None


@dataclass(frozen=True)
class NovaMetadata:
    """What Nova has noted in a domain.

    :ivar version: of Nova, when it wrote this
    :ivar extra_specs: of the flavor; None of a Nova that did not write them
    :ivar image_properties: None of a Nova that did not write them
    :ivar image: ID of the image that it was booted from; None for a volume
    """

    name: str
    version: str
    flavor: str
    vcpus: int | None
    memory_mb: int | None
    extra_specs: Mapping[str, str] | None
    image_properties: Mapping[str, str] | None
    image: str | None = None


@dataclass(frozen=True)
class Domain:
    """One domain.

    :ivar kind: kvm; qemu is emulation
    :ivar running: the XML of one that does not run says what is to be
    :ivar most_vcpus: those that may be plugged in while it runs, too
    :ivar current_kb: what its balloon leaves it
    :ivar cells_kb: {its NUMA node: memory}
    :ivar xml: all of it, of which checks look for what limits it
    :ivar cpus: those that its vCPUs without a pin may use; None: all
    :ivar vcpupins: {vCPU: CPUs}
    :ivar iothreadpins: {number of the I/O thread: CPUs}
    :ivar memory: of all its memory; None: it is bound nowhere
    :ivar memnodes: of its NUMA nodes
    :ivar cells: {its NUMA node: vCPUs}; empty if it shows none
    :ivar page_sizes_kb: of huge pages that it asks for, 0 for the host's default
        size; empty if it asks for none
    :ivar nova: None if Nova did not make it
    """

    uuid: str
    name: str
    kind: str
    running: bool
    vcpus: int
    memory_kb: int
    cpus: frozenset[int] | None = None
    vcpupins: Mapping[int, frozenset[int]] = field(default_factory=dict)
    emulatorpin: frozenset[int] | None = None
    iothreads: int = 0
    iothreadpins: Mapping[int, frozenset[int]] = field(default_factory=dict)
    memory: Binding | None = None
    memnodes: Mapping[int, Binding] = field(default_factory=dict)
    cells: Mapping[int, frozenset[int]] = field(default_factory=dict)
    page_sizes_kb: tuple[int, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    disks: tuple[DomainDisk, ...] = ()
    nova: NovaMetadata | None = None
    most_vcpus: int = 0
    current_kb: int = 0
    cells_kb: Mapping[int, int] = field(default_factory=dict)
    machine: str = ""
    xml: ET.Element = field(
        default_factory=lambda: ET.Element("domain"), compare=False, repr=False
    )

    @property
    def source(self) -> str:
        """The command that told it."""
        return dumpxml(self.uuid)

    @property
    def pins(self) -> dict[int, int]:
        """{vCPU: CPU} of the vCPUs that have one CPU."""
        return {
            vcpu: min(cpus) for vcpu, cpus in self.vcpupins.items() if len(cpus) == 1
        }

    @property
    def pinned_cpus(self) -> frozenset[int]:
        """All CPUs that its pins name."""
        return frozenset().union(*self.vcpupins.values())

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
        return _domain(_parse(text))
    except (ET.ParseError, CPUSetError, ValueError) as exc:
        raise NotReadError(command, f"it cannot be understood: {exc}") from exc


def _parse(text: str) -> ET.Element:
    if len(text) > MOST_CHARACTERS:
        message = f"it is longer than {MOST_CHARACTERS} characters"
        raise ValueError(message)
    # libvirt writes neither; entities are how XML eats a machine's memory.
    if re.search(r"<!(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise ValueError("it declares a document type")
    root = ET.fromstring(text)  # noqa: S314
    if root.tag != "domain":
        message = f"its root is {root.tag!r:.50}, not 'domain'"
        raise ValueError(message)
    return root


def _domain(root: ET.Element) -> Domain:
    vcpu = root.find("vcpu")
    if vcpu is None:
        raise ValueError("it has no element vcpu")
    cpus = vcpu.get("cpuset")
    emulator = root.find("cputune/emulatorpin")
    binding = root.find("numatune/memory")
    current, machine = root.find("currentMemory"), root.find("os/type")
    return Domain(
        uuid=_text(root, "uuid"),
        name=_text(root, "name"),
        kind=root.get("type", ""),
        running=root.get("id") is not None,
        vcpus=int(vcpu.get("current") or vcpu.text or ""),
        memory_kb=_kib(root.find("memory")),
        cpus=None if cpus is None else cpuset.parse(cpus),
        vcpupins=_pins(root, "vcpupin", "vcpu"),
        emulatorpin=None if emulator is None else _cpus(emulator, "cpuset"),
        iothreads=int(_text(root, "iothreads") or 0),
        iothreadpins=_pins(root, "iothreadpin", "iothread"),
        memory=None if binding is None else _binding(binding),
        memnodes={
            int(node.get("cellid", "")): _binding(node)
            for node in root.findall("numatune/memnode")
        },
        cells={
            int(cell.get("id") or index): _cpus(cell, "cpus")
            for index, cell in enumerate(root.findall("cpu/numa/cell"))
        },
        page_sizes_kb=_page_sizes(root),
        interfaces=tuple(map(_interface, root.findall("devices/interface"))),
        disks=tuple(map(_disk, root.findall("devices/disk"))),
        nova=_nova(root),
        most_vcpus=int(vcpu.text or ""),
        current_kb=_kib(root.find("memory" if current is None else "currentMemory")),
        cells_kb={
            int(cell.get("id") or index): int(cell.get("memory", 0))
            * _unit(cell)
            // 1024
            for index, cell in enumerate(root.findall("cpu/numa/cell"))
        },
        machine="" if machine is None else machine.get("machine", ""),
        xml=root,
    )


def _text(element: ET.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _cpus(element: ET.Element, name: str) -> frozenset[int]:
    return cpuset.parse(element.get(name, ""))


def _pins(root: ET.Element, tag: str, name: str) -> dict[int, frozenset[int]]:
    return {
        int(pin.get(name, "")): _cpus(pin, "cpuset")
        for pin in root.findall(f"cputune/{tag}")
    }


def _binding(element: ET.Element) -> Binding:
    # Without a mode it is strict, as libvirt's documentation says.
    return Binding(element.get("mode", "strict"), _cpus(element, "nodeset"))


def _kib(element: ET.Element | None) -> int:
    if element is None:
        raise ValueError("it has no element memory")
    return int(element.text or "") * _unit(element) // 1024


def _unit(element: ET.Element) -> int:
    unit = element.get("unit", "KiB").lower()
    if unit not in _UNITS:
        message = f"unknown unit of memory: {unit!r:.50}"
        raise ValueError(message)
    return _UNITS[unit]


def _page_sizes(root: ET.Element) -> tuple[int, ...]:
    hugepages = root.find("memoryBacking/hugepages")
    if hugepages is None:
        return ()
    pages = hugepages.findall("page")
    sizes = {int(page.get("size", "")) * _unit(page) // 1024 for page in pages}
    return tuple(sorted(sizes)) or (0,)


def _interface(element: ET.Element) -> Interface:
    model, driver = element.find("model"), element.find("driver")
    target, mac = element.find("target"), element.find("mac")
    return Interface(
        kind=element.get("type", ""),
        model="" if model is None else model.get("type", ""),
        queues=1 if driver is None else int(driver.get("queues", 1)),
        target="" if target is None else target.get("dev", ""),
        mac="" if mac is None else mac.get("address", ""),
    )


def _disk(element: ET.Element) -> DomainDisk:
    driver, target = element.find("driver"), element.find("target")
    queues = None if driver is None else driver.get("queues")
    iothread = None if driver is None else driver.get("iothread")
    return DomainDisk(
        target="" if target is None else target.get("dev", ""),
        bus="" if target is None else target.get("bus", ""),
        queues=None if queues is None else int(queues),
        iothread=None if iothread is None else int(iothread),
    )


def _nova(root: ET.Element) -> NovaMetadata | None:
    for namespace in (_NOVA, _OLD_NOVA):
        found = root.find(f"metadata/{namespace}instance")
        if found is not None:
            return _metadata(found, namespace)
    return None


def _metadata(instance: ET.Element, ns: str) -> NovaMetadata:
    package, flavor = instance.find(f"{ns}package"), instance.find(f"{ns}flavor")
    image, root = instance.find(f"{ns}image"), instance.find(f"{ns}root")
    vcpus = _text(instance, f"{ns}flavor/{ns}vcpus")
    memory_mb = _text(instance, f"{ns}flavor/{ns}memory")
    return NovaMetadata(
        name=_text(instance, f"{ns}name"),
        version="" if package is None else package.get("version", ""),
        flavor="" if flavor is None else flavor.get("name", ""),
        vcpus=int(vcpus) if vcpus else None,
        memory_mb=int(memory_mb) if memory_mb else None,
        extra_specs=_named(flavor, f"{ns}extraSpecs"),
        image_properties=_named(image, f"{ns}properties"),
        image=None if root is None else root.get("uuid"),
    )


def _named(element: ET.Element | None, path: str) -> dict[str, str] | None:
    """Return {name: text} of the children of an element, None if it is not there."""
    found = None if element is None else element.find(path)
    return None if found is None else dict(_items(found))


def _items(element: ET.Element) -> Iterator[tuple[str, str]]:
    for child in element:
        if name := child.get("name"):
            yield name, (child.text or "").strip()
