# SPDX-License-Identifier: Apache-2.0
"""A VM class: what every VM of it looks like, and what it may stand beside."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import os_resource_classes
import os_traits

from nova_perfvm import constants as const
from nova_perfvm.policy.keys import LEFT_OUT, NAME, count, says

CPUPolicy = Literal["dedicated", "shared"]
ThreadPolicy = Literal["prefer", "require", "isolate"]
SMT = Literal["cores", "threads"]
EmulatorThreads = Literal["share", "isolate"]
Exclusive = Literal["host", "cell", "none"]
PageSize = Literal["small", "large", "2MB", "1GB"]
DiskSource = Literal["volume", "image"]

Name = Annotated[str, says(minLength=1, maxLength=255, description="a name")]
VCPUs = Annotated[int, count(1, 4096, "vCPUs")]
MemoryGB = Annotated[int, count(1, 1048576, "GiB")]
RootGB = Annotated[int, count(0, 1048576, "GiB")]
IOPS = Annotated[int, count(1, 2147483647, "I/O operations per second")]
NUMANodes = Annotated[int, count(1, 64, "NUMA nodes")]
VMs = Annotated[int, count(1, 4096, "VMs")]
HostTrait = Annotated[
    str,
    says(
        anyOf=[
            {"enum": os_traits.get_traits()},
            {"pattern": rf"^CUSTOM_(?!{const.NAMESPACE.upper()}_)[A-Z0-9_]{{1,248}}\Z"},
        ],
        description=(
            "a trait that os-traits has, such as HW_NIC_SRIOV, or one of your own that "
            f"begins with CUSTOM_ and not with {const.CUSTOM_PREFIX}"
        ),
    ),
]

# How Nova's request writes the page sizes of the policy, in KiB.
PAGE_SIZES_KB: dict[str, int] = {"2MB": 2048, "1GB": 1048576}


@dataclass(frozen=True, slots=True)
class Disk:
    """Where a VM's root disk lives.

    :ivar source: ``volume``, a Cinder volume of its own, or ``image``
    :ivar volume_type: Cinder volume type for root volumes, None for the default
    :ivar read_iops: guaranteed reads per second, None for no guarantee
    :ivar write_iops: guaranteed writes per second, None for no guarantee
    """

    source: DiskSource = "image"
    volume_type: Name | None = None
    read_iops: IOPS | None = None
    write_iops: IOPS | None = None


@dataclass(frozen=True, slots=True)
class FlavorSize:
    """One flavor of a class: vCPUs, memory in GiB and root disk in GiB."""

    vcpus: VCPUs
    memory_gb: MemoryGB
    root_gb: RootGB


@dataclass(frozen=True, slots=True)
class FlavorTemplate:
    """The flavors of a class.

    :ivar name: pattern with the fields ``{class}``, ``{vcpus}``,
        ``{memory_gb}`` and ``{root_gb}``
    :ivar memory_gb: sizes of memory of further flavors, which have the vCPUs of the
        class and ``root_gb``; the file's alone, as they are read into ``sizes``
    :ivar sizes: one flavor each
    """

    name: Name
    memory_gb: Annotated[
        tuple[MemoryGB, ...],
        says(minItems=1, uniqueItems=True),
        says(description="a list of memory sizes in GiB, such as [64, 128]"),
    ] = field(default=(), kw_only=True, metadata=LEFT_OUT)
    root_gb: RootGB = field(default=0, kw_only=True, metadata=LEFT_OUT)
    sizes: Annotated[
        tuple[FlavorSize, ...],
        says(minItems=1, description="a list of {vcpus, memory_gb, root_gb}"),
    ] = field(default=(), metadata=LEFT_OUT)

    def name_of(self, class_name: str, size: FlavorSize) -> str:
        """Fill the pattern for one size."""
        return self.name.format_map(
            {
                "class": class_name,
                "vcpus": size.vcpus,
                "memory_gb": size.memory_gb,
                "root_gb": size.root_gb,
            }
        )


@dataclass(frozen=True, slots=True)
class VMClass:
    """One class; the fields are the keys of the policy file.

    :ivar default: the class of flavors that name none and are not pinned
    :ivar vcpus: exactly as many vCPUs has each VM; None for any number
    :ivar former_vcpus: sizes in vCPUs that a running VM may still have, of
        before ``vcpus`` was changed; no new one gets them
    :ivar cpu_thread_policy: Nova's ``hw:cpu_thread_policy``; None for Nova's
        default, which is ``prefer``
    :ivar smt: what one vCPU owns on an SMT host: a core, or one thread of it
    :ivar emulator_threads: Nova's ``hw:emulator_threads_policy``; None leaves
        QEMU's own threads on the VM's CPUs
    :ivar numa_nodes: over how many NUMA nodes a VM is split; None says nothing
    :ivar max_per_host: at most so many VMs of the class on a host
    :ivar exclusive: ``host``: never on a host with VMs of another class;
        ``cell``: never on their NUMA node; ``none``
    :ivar mem_page_size: Nova's ``hw:mem_page_size``; None says nothing
    :ivar host_traits: traits of Placement that hosts of its VMs must have
    """

    name: str = field(metadata=NAME)
    default: bool = False
    vcpus: VCPUs | None = None
    former_vcpus: Annotated[
        tuple[VCPUs, ...],
        says(uniqueItems=True, description="a list of numbers of vCPUs, such as [20]"),
    ] = ()
    cpu_policy: CPUPolicy = "shared"
    cpu_thread_policy: ThreadPolicy | None = None
    smt: SMT = "cores"
    emulator_threads: EmulatorThreads | None = None
    numa_nodes: NUMANodes | None = None
    max_per_host: VMs | None = None
    exclusive: Exclusive = "none"
    vif_multiqueue: bool = False
    mem_page_size: PageSize | None = None
    host_traits: Annotated[
        tuple[HostTrait, ...],
        says(uniqueItems=True, description="a list of traits, such as [HW_NIC_SRIOV]"),
    ] = ()
    disk: Disk = field(default_factory=Disk)
    flavors: FlavorTemplate | None = field(default=None, metadata=LEFT_OUT)

    @property
    def custom_name(self) -> str:
        """The class in names of Placement, such as ``HP_20`` for ``hp-20``."""
        name: str = os_resource_classes.normalize_name(self.name)
        return name.removeprefix(os_resource_classes.CUSTOM_NAMESPACE)

    @property
    def pinned(self) -> bool:
        """Return whether each vCPU owns a physical CPU."""
        return self.cpu_policy == "dedicated"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The vCPUs that VMs of it have, today's first; empty for any number."""
        return () if self.vcpus is None else (self.vcpus, *self.former_vcpus)

    def of_size(self, vcpus: int) -> VMClass:
        """Return the class as it is for its VMs of a former size.

        For any other number of vCPUs it is the class itself.
        """
        if vcpus not in self.former_vcpus:
            return self
        others = tuple(size for size in self.sizes if size != vcpus)
        return replace(self, vcpus=vcpus, former_vcpus=others)

    @property
    def cells_per_vm(self) -> int:
        """NUMA nodes that one VM occupies; Nova puts pinned VMs on one."""
        return self.numa_nodes or 1

    @property
    def cell_vcpus(self) -> int:
        """Pinned vCPUs of one VM on each of its cells; 0 if it is not pinned."""
        if not self.pinned or self.vcpus is None:
            return 0
        return self.vcpus // self.cells_per_vm

    @property
    def least_cell_vcpus(self) -> int:
        """``cell_vcpus`` of its smallest VMs, of former sizes, too."""
        return min(self.sizes) // self.cells_per_vm if self.cell_vcpus else 0

    @property
    def _emulator_pcpus(self) -> int:
        """Physical CPUs of its own that QEMU takes for one VM.

        Nova takes it on the VM's first cell only; for VMs of several cells counting
        it on each is an upper bound.
        """
        return 1 if self.emulator_threads == "isolate" else 0

    @property
    def cell_pcpus(self) -> int:
        """Physical CPUs that one VM takes on each of its cells."""
        return self.cell_vcpus + self._emulator_pcpus if self.cell_vcpus else 0

    @property
    def cell_sizes(self) -> tuple[int, ...]:
        """``cell_pcpus`` of each of its sizes, today's first; empty if not pinned."""
        sizes = self.sizes if self.pinned else ()
        return tuple(n // self.cells_per_vm + self._emulator_pcpus for n in sizes)

    @property
    def vm_pcpus(self) -> int:
        """Physical CPUs that one VM takes on its host; 0 if it is not pinned."""
        pinned = self.pinned and self.vcpus is not None
        return (self.vcpus or 0) + self._emulator_pcpus if pinned else 0

    def capped(self, vms: int) -> int:
        """Return how many of so many VMs that fit a host may be there."""
        return vms if self.max_per_host is None else min(vms, self.max_per_host)
