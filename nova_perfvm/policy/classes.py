# SPDX-License-Identifier: Apache-2.0
"""A VM class: the size and properties of its VMs, and their neighbours on a host."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, Literal

import os_resource_classes
import os_traits

from nova_perfvm import constants as const
from nova_perfvm.documents.keys import (
    EACH_ONCE,
    LEFT_OUT,
    NAME,
    Expected,
    count,
    matching,
)
from nova_perfvm.documents.mistakes import KeyPath, Mistake
from nova_perfvm.policy import guest
from nova_perfvm.policy.flavors import FlavorTemplate, VCPUs
from nova_perfvm.policy.limits import PAGE_SIZES_KB, even_share, even_sizes, name_fault
from nova_perfvm.policy.written_keys import (
    OTHER_TOPOLOGY,
    NovaKeys,
    as_extra_spec,
    refusal,
)

# Stands for the type in a proposed policy, until an operator has chosen one.
TYPE_TO_CHOOSE: Final = "CHOOSE_A_VOLUME_TYPE"
VolumeType = Annotated[
    str,
    Expected(
        "the name of a volume type of Cinder (openstack volume type list), or null "
        "for Cinder's default type",
        lambda name: 0 < len(name) < 256 and name != TYPE_TO_CHOOSE,
    ),
]
IOPS = Annotated[int, count(1, 2147483647, "I/O operations per second")]
NUMANodes = Annotated[int, count(1, 64, "NUMA nodes")]
VMs = Annotated[int, count(1, 4096, "VMs")]
_TRAITS: Final = frozenset(os_traits.get_traits())
_OWN_TRAIT: Final = re.compile(
    rf"CUSTOM_(?!{const.NAMESPACE.upper()}_)[A-Z0-9_]{{1,248}}"
)
HostTrait = Annotated[
    str,
    Expected(
        "a trait that os-traits has, such as HW_NIC_SRIOV, or one of your own that "
        f"begins with CUSTOM_ and not with {const.CUSTOM_PREFIX}",
        lambda trait: trait in _TRAITS or _OWN_TRAIT.fullmatch(trait) is not None,
    ),
]
ClassName = Annotated[
    str,
    matching(
        "[a-z][a-z0-9_-]{0,62}",
        "a class name of lower-case letters, digits, - and _, starting with a letter, "
        "at most 63 long",
    ),
]
# Keys that matter to pinned VMs only, each with its default.
_PINNED_ONLY: Final[dict[str, object]] = {
    "cpu_thread_policy": None,
    "emulator_threads": None,
    "max_per_host": None,
    "exclusive": "none",
    "smt": "cores",
}


@dataclass(frozen=True, slots=True)
class Disk:
    """A VM's root disk.

    :ivar source: ``volume`` for a Cinder volume per VM, or ``image``
    :ivar volume_type: Cinder volume type for root volumes, None for the default
    :ivar bus: the bus of the class's images; None for virtio with ``source: volume``,
        else as the image says
    :ivar read_iops: guaranteed reads per second, None for no guarantee
    :ivar write_iops: guaranteed writes per second, None for no guarantee
    """

    source: Literal["volume", "image"] = "image"
    volume_type: VolumeType | None = None
    bus: Literal["virtio", "scsi"] | None = None
    read_iops: IOPS | None = None
    write_iops: IOPS | None = None


@dataclass(frozen=True, slots=True)
class VMClass:
    """One class; the fields are the keys of the policy file.

    :ivar default: whether unpinned flavors that name no class belong to this class
    :ivar vcpus: number of vCPUs of every VM; None for any number
    :ivar former_vcpus: earlier values of ``vcpus``, which running VMs may still have;
        new VMs cannot
    :ivar cpu_thread_policy: Nova's ``hw:cpu_thread_policy``; None for Nova's
        default, which is ``prefer``
    :ivar smt: whether a vCPU owns a core (``cores``) or a thread on an SMT host
    :ivar emulator_threads: Nova's ``hw:emulator_threads_policy``; None leaves
        QEMU's own threads on the VM's CPUs
    :ivar numa_nodes: number of NUMA nodes that a VM is split over; None leaves it to
        Nova, which puts a pinned VM on one
    :ivar max_per_host: most VMs of the class on a host; None for any number
    :ivar exclusive: ``host``: no VM of another class on the same host; ``cell``: none
        on the same NUMA node; ``none``: no restriction
    :ivar mem_page_size: Nova's ``hw:mem_page_size``; None for any page size
    :ivar guest_topology: sockets and threads that the guest sees; None leaves them to
        Nova
    :ivar locked_memory: whether the host never swaps the VM's memory
    :ivar packed_ring: whether virtio network cards have packed rings
    :ivar pmu: whether the guest has performance counters; None for QEMU's default
    :ivar realtime: vCPUs with a real-time priority on the host
    :ivar maxphysaddr: bits of the guest's physical addresses; None for QEMU's default
    :ivar host_traits: Placement traits that hosts must have for VMs of the class
    :ivar extra_specs: further extra specs of the class's flavors
    :ivar image_properties: further properties of the class's images
    """

    name: ClassName = field(metadata=NAME)
    default: bool = False
    vcpus: VCPUs | None = None
    former_vcpus: Annotated[
        tuple[VCPUs, ...],
        Expected("a list of vCPU numbers, such as [20]"),
        EACH_ONCE,
    ] = ()
    cpu_policy: Literal["dedicated", "shared"] = "shared"
    cpu_thread_policy: Literal["prefer", "require", "isolate"] | None = None
    smt: Literal["cores", "threads"] = "cores"
    emulator_threads: Literal["share", "isolate"] | None = None
    numa_nodes: NUMANodes | None = None
    max_per_host: VMs | None = None
    exclusive: Literal["host", "cell", "none"] = "none"
    vif_multiqueue: bool = False
    mem_page_size: Literal["small", "large", "2MB", "1GB"] | None = None
    guest_topology: guest.GuestTopology | None = None
    locked_memory: bool = False
    packed_ring: bool = False
    pmu: bool | None = None
    realtime: guest.Realtime | None = None
    maxphysaddr: guest.MaxPhysAddr | None = None
    host_traits: Annotated[
        tuple[HostTrait, ...],
        Expected("a list of traits, such as [HW_NIC_SRIOV]"),
        EACH_ONCE,
    ] = ()
    # A VMClass may be the key of a mapping, and a mapping has no hash.
    extra_specs: NovaKeys = field(default_factory=dict, hash=False)
    image_properties: NovaKeys = field(default_factory=dict, hash=False)
    disk: Disk = field(default_factory=Disk)
    flavors: FlavorTemplate | None = field(default=None, metadata=LEFT_OUT)

    def __post_init__(self) -> None:
        """Add a flavor size with the class's vCPUs for each entry of ``memory_gb``."""
        if self.flavors and self.flavors.memory_gb and self.vcpus is not None:
            object.__setattr__(self, "flavors", self.flavors.of_memory(self.vcpus))

    @property
    def custom_name(self) -> str:
        """The class's part of Placement's names, such as ``HP_20`` for ``hp-20``."""
        name: str = os_resource_classes.normalize_name(self.name)
        return name.removeprefix(os_resource_classes.CUSTOM_NAMESPACE)

    @property
    def pinned(self) -> bool:
        """Return whether each vCPU owns a physical CPU."""
        return self.cpu_policy == "dedicated"

    @property
    def sizes(self) -> tuple[int, ...]:
        """``vcpus``, then ``former_vcpus``; empty for a class without ``vcpus``."""
        return () if self.vcpus is None else (self.vcpus, *self.former_vcpus)

    def of_size(self, vcpus: int) -> VMClass:
        """Return a copy of the class with a former size as its ``vcpus``.

        Return the class itself if ``vcpus`` is no former size.
        """
        if vcpus not in self.former_vcpus:
            return self
        others = tuple(size for size in self.sizes if size != vcpus)
        return replace(self, vcpus=vcpus, former_vcpus=others)

    @property
    def cells_per_vm(self) -> int:
        """Number of NUMA nodes that a VM occupies; 1 unless the class says more."""
        return self.numa_nodes or 1

    @property
    def cell_vcpus(self) -> int:
        """Pinned vCPUs of a VM per NUMA node; 0 for a class that shares CPUs."""
        if not self.pinned or self.vcpus is None:
            return 0
        return self.vcpus // self.cells_per_vm

    @property
    def least_cell_vcpus(self) -> int:
        """``cell_vcpus`` of the class's smallest size, former sizes included."""
        return min(self.sizes) // self.cells_per_vm if self.cell_vcpus else 0

    @property
    def _emulator_pcpus(self) -> int:
        """Physical CPUs that Nova pins for a VM's emulator threads: 0 or 1.

        Nova pins one on the VM's first NUMA node only, so for VMs with several NUMA
        nodes a sum over the nodes is an upper bound.
        """
        return 1 if self.emulator_threads == "isolate" else 0

    @property
    def cell_pcpus(self) -> int:
        """Physical CPUs that a VM takes per NUMA node, emulator threads included."""
        return self.cell_vcpus + self._emulator_pcpus if self.cell_vcpus else 0

    def cell_takes(self, threads: int, *, mixed: bool = False) -> int:
        """Return the CPUs of a NUMA node that a VM keeps from others.

        :param threads: hardware threads per core
        :param mixed: see :meth:`cpus_kept`
        """
        if not self.cell_vcpus:
            return 0
        return self.cpus_kept(self.cell_vcpus, threads, mixed=mixed)

    def cpus_kept(self, vcpus: int, threads: int, *, mixed: bool) -> int:
        """Return the CPUs that a VM with `vcpus` on a NUMA node keeps from others.

        With the thread policy ``require`` the VM takes whole cores: Nova gives the
        remaining thread of a core to emulator threads only.

        :param threads: hardware threads per core
        :param mixed: whether the node has VMs of other sizes, too: these may not be
            able to use the sibling of an emulator thread's CPU
        """
        pcpus = vcpus + self._emulator_pcpus
        if self.cpu_thread_policy != "require":
            return pcpus
        whole = pcpus if mixed else vcpus
        return max(pcpus, -(-whole // threads) * threads)

    @property
    def cell_sizes(self) -> tuple[int, ...]:
        """``cell_pcpus`` of each of ``sizes``; empty for a class that shares CPUs."""
        sizes = self.sizes if self.pinned else ()
        return tuple(n // self.cells_per_vm + self._emulator_pcpus for n in sizes)

    @property
    def vm_pcpus(self) -> int:
        """Physical CPUs that a VM pins on its host; 0 for a class that shares CPUs.

        ``vcpus``, plus one in all (not one per node) for isolated emulator threads.
        """
        pinned = self.pinned and self.vcpus is not None
        return (self.vcpus or 0) + self._emulator_pcpus if pinned else 0

    @property
    def flavor_names(self) -> tuple[str, ...]:
        """The names of the class's flavors, in the order of their sizes."""
        of = self.flavors
        return tuple(of.name_of(self.name, size) for size in of.sizes) if of else ()

    def capped(self, vms: int) -> int:
        """Return ``vms``, the VMs that fit a host, capped at ``max_per_host``."""
        return vms if self.max_per_host is None else min(vms, self.max_per_host)

    def mistakes(self) -> Iterator[Mistake]:
        """Yield the contradictions between keys of this class alone."""
        for key, nothing in _PINNED_ONLY.items():
            value = getattr(self, key)
            if value != nothing and not self.pinned:
                message = f"{value} is for pinned VMs only: remove it, or set"
                yield Mistake((key,), f"{message} cpu_policy: dedicated")
        if self.pinned and self.vcpus is None:
            message = "missing: a pinned class needs its exact number of vCPUs"
            yield Mistake(("vcpus",), message)
        if self.cpu_thread_policy == "require" and self.smt == "cores":
            yield Mistake(
                ("cpu_thread_policy",),
                "require puts vCPUs on sibling threads, smt: cores promises each a "
                "core of its own: use smt: threads, or prefer",
            )
        yield from self._guest_mistakes()
        yield from self._split_mistakes()
        if self.default and (self.pinned or self.vcpus is not None):
            yield Mistake(
                ("default",),
                "the default class is of any size, and not pinned: it needs "
                "cpu_policy: shared, and no vcpus",
            )
        if self.disk.source == "image" and self.disk.volume_type is not None:
            yield Mistake(
                ("disk", "volume_type"),
                f"{self.disk.volume_type!r} has no effect with source: image: remove "
                "it, or use source: volume",
            )
        if self.flavors is not None:
            yield from self._flavor_mistakes(self.flavors)
        for where, keys in self.own_keys():
            reasons = {key: self.refusal(key) for key in keys}
            yield from (
                Mistake((*where, key), f"{why}: remove it")
                for key, why in reasons.items()
                if why
            )

    def refusal(self, key: str) -> str | None:
        """Return why a key of Nova is no operator's to set; None for other keys."""
        if key in {f"trait:{name}" for name in self.host_traits}:
            return "the class's key host_traits decides it"
        if self.guest_topology and as_extra_spec(key) in OTHER_TOPOLOGY:
            return "the class's key guest_topology decides it"
        return refusal(key, pinned=self.pinned)

    def _guest_mistakes(self) -> Iterator[Mistake]:
        found: dict[str, Iterable[Mistake]] = {}
        if self.guest_topology:
            flavors = self.flavors.sizes if self.flavors else ()
            sizes = self.sizes or [size.vcpus for size in flavors]
            cells = [size // self.cells_per_vm for size in sizes]
            found["guest_topology"] = self.guest_topology.misfits(self.smt, cells)
        if self.realtime:
            emulated = self.emulator_threads is not None
            found["realtime"] = self.realtime.misfits(self.sizes, emulated=emulated)
            if not self.pinned:
                message = "is for pinned VMs only: remove it, or set"
                yield Mistake(("realtime",), f"{message} cpu_policy: dedicated")
        for key, mistakes in found.items():
            for mistake in mistakes:
                yield Mistake((key, *mistake.path), mistake.message)
        if self.locked_memory and self.mem_page_size is None:
            message = "Nova locks only memory with a page size: set mem_page_size"
            yield Mistake(("locked_memory",), f"{message}, such as small")

    def own_keys(self) -> Iterator[tuple[KeyPath, NovaKeys]]:
        """Yield the keys of Nova that the operator adds, with their place."""
        yield ("extra_specs",), self.extra_specs
        yield ("image_properties",), self.image_properties
        for index, size in enumerate(self.flavors.sizes if self.flavors else ()):
            yield ("flavors", "sizes", str(index), "extra_specs"), size.extra_specs

    def _split_mistakes(self) -> Iterator[Mistake]:
        """Yield the mistakes of ``numa_nodes`` and ``former_vcpus``."""
        nodes, vcpus = self.cells_per_vm, self.vcpus
        if vcpus is None:
            for key in ("numa_nodes", "former_vcpus"):
                if getattr(self, key) and not self.pinned:
                    message = "VMs are of any size: remove it, or give the class vcpus"
                    yield Mistake((key,), message)
            return
        if vcpus in self.former_vcpus:
            message = f"{vcpus} is the current vcpus of the class: remove it"
            yield Mistake(("former_vcpus",), message)
        for key, size in (
            ("numa_nodes", vcpus),
            *(("former_vcpus", size) for size in self.former_vcpus),
        ):
            if even_share(size, nodes) is None:
                message = f"{size} vCPUs cannot be split evenly over {nodes} NUMA nodes"
                sizes = even_sizes(size, nodes)
                yield Mistake((key,), f"{message}, {sizes} can: change one of the two")

    def _dropped_keys(self, flavors: FlavorTemplate) -> Iterator[Mistake]:
        """Yield a mistake for a key below ``flavors`` that makes no flavor."""
        if flavors.memory_gb and self.vcpus is None and not self.pinned:
            yield Mistake(
                ("flavors", "memory_gb"),
                "makes flavors with the class's vcpus, which the class lacks: "
                "use sizes, such as [{vcpus: 2, memory_gb: 4, root_gb: 20}]",
            )
        elif flavors.root_gb and not flavors.memory_gb:
            message = "is for the flavors of memory_gb, which is missing: remove it"
            yield Mistake(("flavors", "root_gb"), message)
        elif self.vcpus is None and not self.pinned and not flavors.sizes:
            yield Mistake(("flavors",), "declares no flavor: give sizes")

    def memory_fault(self, memory_gb: int) -> str | None:
        """Return why no VM of the class can have so much memory, None if it can.

        Nova wants it split evenly over the VM's NUMA nodes, and each share to be
        whole pages where the class names their size; no host fits otherwise.
        """
        nodes, pages = self.cells_per_vm, self.mem_page_size
        if memory_gb * 1024**2 % (nodes * PAGE_SIZES_KB.get(pages or "", 1024)) == 0:
            return None
        return (
            f"{memory_gb} GiB cannot be split evenly over {nodes} NUMA nodes, in whole "
            f"pages of {pages or 'any size'}"
        )

    def _flavor_mistakes(self, flavors: FlavorTemplate) -> Iterator[Mistake]:
        yield from self._dropped_keys(flavors)
        for index, size in enumerate(flavors.sizes):
            where = ("flavors", "sizes", str(index))
            if self.vcpus not in {None, size.vcpus}:
                yield Mistake(
                    (*where, "vcpus"),
                    f"{size.vcpus}, but VMs of this class have exactly {self.vcpus}",
                )
            if fault := self.memory_fault(size.memory_gb):
                yield Mistake((*where, "memory_gb"), fault)
            if size.root_gb == 0 and self.disk.source == "image":
                yield Mistake(
                    (*where, "root_gb"),
                    "0 GB with source: image: Nova lets only administrators boot such "
                    "flavors from an image; give a size, or use source: volume",
                )
        names = Counter(self.flavor_names)
        for name, times in names.items():
            if times > 1:
                yield Mistake(
                    ("flavors", "name"),
                    f"{times} sizes would be called {name!r}: use the fields that tell "
                    "them apart, such as {memory_gb}",
                )
        if fault := next(filter(None, map(name_fault, names)), None):
            yield Mistake(("flavors", "name"), fault)
