# SPDX-License-Identifier: Apache-2.0
"""A policy made of what a cloud has, proved as ``policy check`` proves it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.diagnose.survey import sizes as pinned
from nova_perfvm.diagnose.survey.sizes import PinnedSize, most_common
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import (
    Flavor,
    HostCell,
    Server,
    Snapshot,
    host_facts,
)
from nova_perfvm.generate.hosts import RESERVED_MEMORY_GB
from nova_perfvm.placement.schemes import scheme_counting
from nova_perfvm.policy import (
    PAGE_SIZES_KB,
    Disk,
    FlavorSize,
    FlavorTemplate,
    HostShape,
    Policy,
    VMClass,
    largest_slots,
    memory_fault,
    policy_mistakes,
    shape_slots,
)
from nova_perfvm.printable import number_of
from nova_perfvm.rules.slots import cell_cpus, host_mode

_GENERAL: Final = VMClass("general", default=True)
_NAME: Final = "high-performance"
_NAME_PATTERNS: Final = ("hp.{vcpus}c.{memory_gb}g", "perfvm.{vcpus}c.{memory_gb}g")
# What a class may say or not: left out where it cannot be as it is today.
_OPTIONAL: Final = ("cpu_thread_policy", "emulator_threads", "flavors")
# Extra specs that the generator makes of the class's keys, by the key.
_OF_KEYS: Final = {
    "cpu_thread_policy": const.CPU_THREAD_POLICY,
    "emulator_threads": const.EMULATOR_THREADS,
}
_GENERATED: Final = frozenset(
    {
        const.CLASS_KEY,
        const.CPU_POLICY,
        const.CPU_THREAD_POLICY,
        const.EMULATOR_THREADS,
        const.NUMA_NODES,
        const.MEM_PAGE_SIZE,
        const.VIF_MULTIQUEUE,
    }
)
# Of a NUMA node's memory, in GiB: sizes of flavors are whole multiples.
_STEP_GB: Final = 8


class ProposalError(PerfVMError):
    """No policy can be made of a cloud, or not as it is asked for."""


@dataclass(frozen=True)
class Proposal:
    """A policy, and what it was made of.

    :ivar why: for each key of it that follows from the cloud: in one sentence
    :ivar left_out: what is there, and the policy does not say
    """

    policy: Policy
    why: Mapping[str, str]
    left_out: tuple[str, ...] = ()


def propose(snapshot: Snapshot, vcpus: int | None = None) -> Proposal:
    """Return a policy for a cloud, with one pinned class.

    :param vcpus: of the VMs of that class; None: what the cloud has, or its hosts
        have room for
    :raises ProposalError: when no host shows its NUMA nodes, or no VM of the size
        fits a host
    """
    return _Proposer(snapshot).propose(vcpus)


class _Proposer:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._sizes = pinned.pinned_sizes(snapshot)
        self._why: dict[str, str] = {}
        self._left_out: list[str] = []

    def propose(self, vcpus: int | None) -> Proposal:
        shapes = self._shapes()
        size = self._size(shapes, vcpus)
        vm_class = self._class(size, shapes)
        policy = Policy(
            host_shapes=shapes,
            placement=self._placement(),
            managed_hosts=self._managed(),
            classes=(vm_class, self._general(vm_class.name)),
        )
        policy = self._sound(policy)
        self._others(size)
        return Proposal(policy, self._why, tuple(self._left_out))

    def _shapes(self) -> tuple[HostShape, ...]:
        """Return the hosts' shapes, the commonest first."""
        shown = [host.shape or _shape(host.cells) for host in self._snapshot.hosts]
        found = [shape for shape in shown if shape]
        if not found:
            raise ProposalError(
                "no host shows its NUMA nodes, so that no policy can be proposed: "
                "read the hypervisors as an administrator does, or collect on the "
                "hosts (nova-perfvm host collect) and name the files with --collected"
            )
        shapes = sorted(set(found), key=lambda shape: (-found.count(shape), shape))
        self._why["host_shape"] = "the shapes that hosts show: " + ", ".join(
            f"{found.count(shape)} of {shape}" for shape in shapes
        )
        return tuple(shapes)

    def _size(self, shapes: tuple[HostShape, ...], vcpus: int | None) -> PinnedSize:
        """Return the size of the class, known to fit a host."""
        if vcpus is not None:
            mine = (size for size in self._sizes if size.vcpus == vcpus)
            size = next(mine, PinnedSize(vcpus))
            if _placed(size, shapes) is None:
                raise ProposalError(
                    f"no host of {', '.join(map(str, shapes))} has room for a VM of "
                    f"{vcpus} pinned vCPUs: name fewer"
                )
            self._why["vcpus"] = "as asked for"
            return size
        for size in pinned.worth_a_class(self._sizes):
            if _placed(size, shapes) is not None:
                self._why["vcpus"] = (
                    f"owned by {number_of(len(size.servers), 'VM')} on "
                    f"{number_of(size.hosts, 'host')}, {size.vcpus} CPUs each: the "
                    "largest size with a tenth of all "
                    "pinned CPUs"
                    if size.servers
                    else "the largest size of a pinned flavor; no VM owns CPUs yet"
                )
                return size
        return PinnedSize(self._whole_node(shapes[0]))

    def _whole_node(self, shape: HostShape) -> int:
        """Return the CPUs of a NUMA node that VMs may own today, or else could."""
        vm_class = VMClass(_NAME, vcpus=1, cpu_policy="dedicated")
        found = []
        for host in self._snapshot.hosts:
            facts = host_facts(self._snapshot, host)
            if host_mode(facts) == "dedicated":
                found.append(min(cell_cpus(vm_class, cell)[0] for cell in facts.cells))
        cpus = most_common(cpus for cpus in found if cpus)
        if cpus is not None and cpus <= shape.cores:
            self._why["vcpus"] = (
                "no VM and no flavor owns CPUs: the CPUs of a NUMA node of the hosts "
                "that have a cpu_dedicated_set"
            )
            return cpus
        self._why["vcpus"] = (
            "no VM and no flavor owns CPUs: a whole NUMA node of the commonest shape; "
            "fewer leave CPUs to the host (--vcpus)"
        )
        return shape.cores

    def _class(self, size: PinnedSize, shapes: tuple[HostShape, ...]) -> VMClass:
        vm_class = _placed(size, shapes)
        if vm_class is None:
            raise ProposalError(
                f"no host of {', '.join(map(str, shapes))} has room for a VM of "
                f"{size.vcpus} pinned vCPUs: name another size with --vcpus"
            )
        if vm_class.smt == "threads":
            self._why["smt"] = "no NUMA node has as many cores as a VM has vCPUs"
        most = largest_slots(Policy(host_shapes=shapes, classes=(vm_class,)))
        self._why["max_per_host"] = "as many as the largest shape has slots"
        for key, spec in _OF_KEYS.items():
            said = size.said(spec)
            if said in {"prefer", "require", "isolate", "share"}:
                changes: dict[str, Any] = {key: said}
                vm_class = replace(vm_class, **changes)
                self._why[key] = f"flavors say {spec}={said}"
        return replace(
            vm_class,
            name=self._name(size),
            max_per_host=most,
            exclusive=self._exclusive(size),
            vif_multiqueue=True,
            mem_page_size=self._page_size(size),
            disk=self._disk(size),
            flavors=self._flavors(size, vm_class, shapes),
        )

    def _name(self, size: PinnedSize) -> str:
        return size.said(const.CLASS_KEY) or _NAME

    def _exclusive(self, size: PinnedSize) -> Any:
        """Return ``cell`` where most VMs of the size are on hosts of both kinds."""
        modes = {
            host.host: provider.mode
            for host in self._snapshot.hosts
            if (provider := self._snapshot.provider_by_uuid.get(host.provider))
        }
        if most_common(modes.get(s.host or "") for s in size.servers) == "mixed":
            self._why["exclusive"] = "most are on hosts with CPUs of both kinds"
            return "cell"
        self._why["exclusive"] = "what keeps other VMs off their caches and memory"
        return "host"

    def _page_size(self, size: PinnedSize) -> Any:
        said = size.said(const.MEM_PAGE_SIZE)
        by_kb = {str(kb): name for name, kb in PAGE_SIZES_KB.items()}
        found = by_kb.get(said or "", said)
        if found in {"small", "large", *PAGE_SIZES_KB}:
            self._why["mem_page_size"] = f"flavors say {const.MEM_PAGE_SIZE}={said}"
            return found
        return None

    def _disk(self, size: PinnedSize) -> Disk:
        if size.servers:
            volumes = sum(server.volume_backed for server in size.servers)
            source = "volume" if 2 * volumes >= len(size.servers) else "image"
            self._why["disk"] = (
                f"{volumes} of {len(size.servers)} such VMs boot from a volume"
            )
        else:
            source = "image" if any(f.disk_gb for f in size.flavors) else "volume"
            self._why["disk"] = (
                "flavors have a root disk" if size.flavors else "a guess"
            )
        return Disk("volume" if source == "volume" else "image")

    def _flavors(
        self, size: PinnedSize, vm_class: VMClass, shapes: tuple[HostShape, ...]
    ) -> FlavorTemplate | None:
        """Return sizes of memory: those that there are, or a share of a node's."""
        image = self._disk(size).source == "image"
        having: list[Server | Flavor] = [*size.servers, *size.flavors]
        found = {
            (-(-one.memory_mb // 1024), one.disk_gb if image else 0)
            for one in having
            if one.memory_mb and (one.disk_gb or not image)
        }
        if found:
            self._why["flavors"] = "the sizes of memory that VMs and flavors have"
        else:
            found = {(gb, 20 if image else 0) for gb in self._share(vm_class, shapes)}
            self._why["flavors"] = (
                "the memory of a NUMA node, less what the host keeps, for each slot"
            )
        for gigabytes, _ in sorted(found):
            fault = memory_fault(vm_class, gigabytes)
            if fault:
                self._left_out.append(f"a flavor of {fault}")
        sizes = tuple(
            FlavorSize(size.vcpus, gigabytes, root_gb)
            for gigabytes, root_gb in sorted(found)
            if memory_fault(vm_class, gigabytes) is None
        )
        if not sizes:
            return None
        several = len({s.memory_gb for s in sizes}) < len(sizes)
        return FlavorTemplate(self._pattern(sizes, several=several), sizes=sizes)

    def _pattern(self, sizes: Collection[FlavorSize], *, several: bool) -> str:
        """Return a pattern that makes no name of a flavor of somebody else's."""
        taken = {
            flavor.name
            for flavor in self._snapshot.flavors
            if const.CLASS_KEY not in flavor.extra_specs
        }
        patterns = [
            pattern + (".{root_gb}g" if several else "") for pattern in _NAME_PATTERNS
        ]
        for pattern in patterns:
            template = FlavorTemplate(pattern)
            if taken.isdisjoint(template.name_of(_NAME, size) for size in sizes):
                return pattern
        return patterns[-1]

    def _share(self, vm_class: VMClass, shapes: tuple[HostShape, ...]) -> Iterator[int]:
        """Yield the memory of one VM in GiB, if the memory of hosts is known."""
        for shape in shapes:
            memory_mb = most_common(
                min(cell.memory_mb for cell in host.cells)
                for host in self._snapshot.hosts
                if host.shape == shape and host.cells
            )
            fits = shape.cell_cpus(vm_class.smt) // (vm_class.cell_pcpus or 1)
            if memory_mb and fits:
                share_gb = (memory_mb // 1024 - RESERVED_MEMORY_GB) // fits
                share_gb *= vm_class.cells_per_vm
                step = _STEP_GB * vm_class.cells_per_vm
                if share_gb > 0:
                    yield share_gb // step * step or share_gb
                return

    def _placement(self) -> Any:
        names = {name for p in self._snapshot.providers for name in p.inventories}
        found = scheme_counting(names)
        self._why["placement"] = (
            f"Placement has {found.resource_class} of hosts already"
            if found
            else "Placement counts the VMs of each host, so that two schedulers at "
            "once, or a forced host, cannot break what is promised"
        )
        return found.name if found else Policy.placement

    def _managed(self) -> Any:
        unnamed = any(
            server.host is not None and const.CLASS_KEY not in server.extra_specs
            for server in self._snapshot.servers
        )
        if unnamed:
            self._why["managed_hosts"] = (
                "VMs run here whose flavors name no class: only hosts that you label "
                "are judged, and all else goes on as before"
            )
            return "labelled"
        self._why["managed_hosts"] = "no VM runs here that the filter could disturb"
        return "all"

    def _general(self, other: str) -> VMClass:
        shared = (
            flavor.extra_specs.get(const.CLASS_KEY)
            for flavor in self._snapshot.flavors
            if flavor.extra_specs.get(const.CPU_POLICY) != "dedicated"
        )
        named = most_common(name for name in shared if name and name != other)
        return replace(_GENERAL, name=named or _GENERAL.name)

    def _sound(self, policy: Policy) -> Policy:
        """Leave out of the class what contradicts the rest of it.

        :raises ProposalError: when that does not help
        """
        while found := policy_mistakes(policy):
            problem = found[0]
            _, name, key, *_ = (*problem.path, "", "", "")
            if key not in _OPTIONAL or name != policy.classes[0].name:
                raise ProposalError(f"no policy can be made of this cloud: {problem}")
            mine, *rest = policy.classes
            nothing: dict[str, Any] = {key: None}
            policy = replace(policy, classes=(replace(mine, **nothing), *rest))
            self._why.pop(key, None)
            self._left_out.append(f"{key}: {problem.message}")
        return policy

    def _others(self, chosen: PinnedSize) -> None:
        """Say what the policy does not have of the pinned VMs and their flavors."""
        for size in self._sizes:
            if size.servers and size.vcpus != chosen.vcpus:
                self._left_out.append(
                    f"{number_of(len(size.servers), 'pinned VM')} of {size.vcpus} "
                    "vCPUs "
                    f"on {number_of(size.hosts, 'host')}, of flavors "
                    f"{', '.join(size.flavor_names)}: they stay as they are on hosts "
                    "without a label (--vcpus "
                    f"{size.vcpus} makes the policy for them)"
                )
        keys = {key for specs in chosen.extra_specs for key in specs} - _GENERATED
        keys = {key for key in keys if const.NAMESPACE not in key.lower()}
        if keys:
            self._left_out.append(
                f"extra specs of today's flavors, {', '.join(sorted(keys))}: new "
                "flavors are made without them; add what you need to these "
                "(an extension of nova_perfvm.properties)"
            )


def _placed(size: PinnedSize, shapes: tuple[HostShape, ...]) -> VMClass | None:
    """Return a class of a size that fits a host of some shape; None if none does."""
    most = max(shape.cells for shape in shapes)
    wanted = [size.cells] if size.servers else range(1, most + 1)
    for smt in ("cores", "threads"):
        for cells in wanted:
            vm_class = VMClass(
                _NAME,
                vcpus=size.vcpus,
                cpu_policy="dedicated",
                smt="threads" if smt == "threads" else "cores",
                numa_nodes=cells,
            )
            split = size.vcpus % cells == 0
            if split and any(shape_slots(vm_class, shape) for shape in shapes):
                return vm_class
    return None


def _shape(cells: Sequence[HostCell]) -> HostShape | None:
    """Return the shape of NUMA nodes that are alike; None where they are not."""
    kinds = {
        (len(cell.cpuset | cell.pcpuset), max(map(len, cell.siblings), default=1))
        for cell in cells
    }
    if len(kinds) != 1:
        return None
    ((cpus, threads),) = kinds
    return HostShape(len(cells), cpus // threads, threads) if cpus >= threads else None
