# SPDX-License-Identifier: Apache-2.0
"""The scheme ``cells``: each NUMA node of a dedicated host is a resource provider.

The providers have CPUs and memory, so Placement offers only hosts on whose NUMA nodes a
VM fits, whatever sizes of VMs are mixed there, and concurrent claims cannot overbook a
node.  A flavor has a group for each NUMA node of the VM.

nova-compute would choose other nodes than Placement.
:mod:`nova_perfvm.scheduler.steering` makes it use the allocated nodes, by a marker
physical network for each node, which the limits of a claim name.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.facts import NUMACell, Reason
from nova_perfvm.facts.demand import Demand, Group
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Inventory, Provider, child_name
from nova_perfvm.placement.schemes.residents import Division, Holding, Resident
from nova_perfvm.placement.schemes.scheme import Child, HostOffer, Scheme
from nova_perfvm.placement.settings import (
    ISOLATED_AGGREGATES,
    NO_FALLBACK_QUERY,
    NUMA_PACKING,
    Setting,
)
from nova_perfvm.policy import PAGE_SIZES_KB, Policy, VMClass
from nova_perfvm.policy.room import groups_of

# Smallest size of a huge page in KiB.
_HUGE_KB: Final = 2048
_ISOLATED: Final = replace(
    ISOLATED_AGGREGATES,
    why="Keeps VMs whose flavors ask for no NUMA node off enrolled hosts.",
    otherwise="VMs that ask for no NUMA node come to enrolled hosts",
)
_SMALL: Final = frozenset({None, "small"})


class CellsScheme(Scheme):
    """``placement: cells``."""

    name = "cells"
    summary = "NUMA nodes of hosts are child providers"
    modes = ("dedicated", "shared")
    resource_class = const.RC_CELL_CPU
    enrolled_modes = ("dedicated",)
    enrolled_prefix = const.TRAIT_CELLS
    # No API of Nova shows NUMA nodes, so they are read from its database.
    enroll_options = ("--from-nova-db",)
    noun = "NUMA nodes"
    steers = True
    mixes = True

    def groups(
        self, policy: Policy, vm_class: VMClass, memory_mb: int
    ) -> Iterator[Group]:
        """Yield the unsuffixed group, then one for each NUMA node of a pinned VM."""
        if not vm_class.pinned:
            yield Group("", {}, forbidden=self.traits_to_avoid(policy))
            return
        slot = self.slot_class(policy, vm_class)
        # The unsuffixed group does not require the trait, as Placement would then read
        # the traits of all hosts with enough CPUs.  Nova's isolated aggregates accept
        # the trait in any group.
        yield Group("", {slot: 1} if slot else {})
        nodes = vm_class.cells_per_vm
        for node in range(nodes):
            yield Group(
                f"_perfvm_{const.CELL_SUFFIX}{node}",
                {
                    const.RC_CELL_CPU: cell_cpus(policy, vm_class),
                    const.RC_CELL_MEMORY: memory_mb // nodes,
                },
                frozenset({self.enrolled_trait(policy)}),
            )

    def group_policy(self, vm_class: VMClass) -> str:
        """Return ``isolate`` for VMs with several NUMA nodes, which have to differ."""
        return "isolate" if vm_class.cells_per_vm > 1 else "none"

    def slot_class(self, policy: Policy, vm_class: VMClass) -> str:
        """Return the slot resource class of a class with ``max_per_host``; or empty."""
        if vm_class.max_per_host is None:
            return ""
        return self._slot_class(policy, vm_class, const.RC_SLOT)

    def trait(self, policy: Policy, vm_class: VMClass) -> str:
        """Return the trait of enrolled hosts, which all pinned classes share."""
        return self.enrolled_trait(policy)

    def traits_to_avoid(self, policy: Policy) -> frozenset[str]:
        """Return the trait of enrolled hosts."""
        return frozenset({self.enrolled_trait(policy)})

    def offers(
        self, policy: Policy, vm_class: VMClass | None, mode: str, slots: int
    ) -> HostOffer:
        """Return the slots of a class with ``max_per_host``, without a trait."""
        return HostOffer(super().offers(policy, vm_class, mode, slots).inventories)

    def children(self, policy: Policy, view: HostView, slots: int) -> tuple[Child, ...]:
        """Return a child provider for each NUMA node with dedicated CPUs.

        If the host's NUMA nodes are unknown, return its present children as they are.
        """
        made = {
            child_name(view.root.name, f"{const.CELL_SUFFIX}{cell.id}"): inventories_of(
                policy, cell
            )
            for cell in view.facts.cells
            if cell.pcpuset
        }
        if not view.compute.cells_told:
            made |= {
                child.name: dict(child.inventories)
                for child in view.children
                if node_of(child.name) is not None and child.inventories
            }
        return tuple(
            Child(name, const.TRAIT_CELLS, inventories)
            for name, inventories in sorted(made.items())
        )

    def enrolled_trait(self, policy: Policy) -> str:
        """Return the trait of hosts whose NUMA nodes are providers."""
        return const.TRAIT_CELLS

    def inventory(self, policy: Policy, slots: Mapping[str, int]) -> dict[str, str]:
        """Return the trait and the slots of an empty host, in words."""
        found = super().inventory(policy, slots)
        return {"trait": self.enrolled_trait(policy), **found}

    def slots_seen(self, tree: Sequence[Provider]) -> tuple[int, int] | None:
        """Return None, as VMs of several sizes share NUMA nodes without fixed slots."""
        return None

    def unfit(self, policy: Policy, view: HostView) -> str:
        """Return why a host's NUMA nodes cannot become providers; empty if they can."""
        if view.root.mode != "dedicated":
            return (
                f"{view.host} is {view.root.mode}, and NUMA nodes are counted on hosts "
                "that have [compute]cpu_dedicated_set alone: nova-perfvm host config"
            )
        if not view.compute.cells_told:
            return (
                f"what NUMA nodes {view.host} has is {view.compute.cells_source}, and "
                "Placement is to count it: read it by --from-nova-db on a "
                "controller, or name what host collect has written there "
                "(--collected), or an --inventory"
            )
        pages = any(cell.mempages for cell in view.facts.cells)
        if _huge_pages(policy) and not pages:
            return (
                "classes of the policy ask for huge pages, and how many the NUMA nodes "
                f"of {view.host} have Nova's database alone tells: read it by "
                "--from-nova-db on a controller"
            )
        return self.mixed_pages(policy, view)

    def mixed_pages(self, policy: Policy, view: HostView) -> str:
        """Return why Placement cannot count a host's huge pages; empty if it can."""
        pools = (pool for cell in view.facts.cells for pool in cell.mempages)
        sizes = {p.size_kb for p in pools if p.total and p.size_kb >= _HUGE_KB}
        if "large" not in _huge_pages(policy) or len(sizes) < 2:
            return ""
        named = [name for name, size in PAGE_SIZES_KB.items() if size in sizes]
        return (
            f"{view.host} has huge pages of several sizes, and a VM takes one: set "
            f"mem_page_size: {' or '.join(named)} in the policy, or boot with one size"
        )

    def is_settled(
        self, policy: Policy, children: Sequence[Child], resident: Resident
    ) -> bool:
        """Return whether a resident holds the right amounts, on any NUMA nodes."""
        if resident.server is None:
            return bool(resident.held)
        if not self.may_take(resident):
            return False
        held = sorted(map(_sizes, resident.held.values()))
        shares = _shares(policy, resident)
        return any(
            held == sorted(map(_sizes, of))
            for of in (shares, _as_run(resident, shares))
        )

    def may_take(self, resident: Resident) -> bool:
        """Return whether a resident has a class, or CPUs that Nova has pinned."""
        server, vm_class = resident.server, resident.vm_class
        if vm_class is None:
            return server is not None and bool(server.pinned_cpus)
        return True

    def divide(
        self,
        policy: Policy,
        view: HostView,
        children: Sequence[Child],
        settled: Sequence[Resident],
        others: Sequence[Resident],
    ) -> Division:
        """Assign to each VM its amounts of the NUMA nodes on which Nova runs the VM."""
        needs: dict[str, Holding] = {}
        faults = []
        for resident in others:
            run = self.run_on(policy, children, resident)
            needs[resident.consumer] = run or {}
            if run is None:
                faults.append(
                    f"on which NUMA nodes {view.describe(resident.consumer)} runs is "
                    "not known, or these are no nodes for pinned VMs: move it away"
                )
        taken = Counter[tuple[str, str]]()
        for held in (*(r.held for r in settled), *needs.values()):
            for of, amounts in held.items():
                taken.update({(of, name): n for name, n in amounts.items()})
        for child in children:
            for name, inventory in child.inventories.items():
                if taken[child.name, name] > inventory.total:
                    faults.append(
                        f"{child.name} has {inventory.total} {name}, and VMs on it "
                        f"take {taken[child.name, name]}: move some away"
                    )
        return Division(needs, tuple(faults))

    def run_on(
        self, policy: Policy, children: Sequence[Child], resident: Resident
    ) -> Holding | None:
        """Return a server's amounts of the NUMA nodes on which Nova runs the server."""
        server, shares = resident.server, _as_run(resident, _shares(policy, resident))
        names = {node_of(child.name): child.name for child in children}
        nodes = [cell.host_node for cell in (server.cells if server else None) or ()]
        if len(nodes) != len(shares) or not nodes or not names.keys() >= set(nodes):
            return None
        return {names[n]: share for n, share in zip(nodes, shares, strict=True)}

    def capacity(self, view: HostView, demand: Demand, slots: int) -> int:
        """Return the number of VMs that fit the NUMA nodes of an empty host."""
        groups = _groups_of(demand)
        if not groups:
            return 0
        shares = [
            min(cell.total(name) // n for name, n in groups[0].items())
            for cell in _cells_of(view).values()
        ]
        return min(slots, groups_of(shares, len(groups)))

    def nodes_offered(self, view: HostView, demand: Demand) -> frozenset[int] | None:
        """Return the NUMA nodes with free amounts for one group of the request."""
        groups = _groups_of(demand)
        if not groups:
            return None
        return frozenset(
            node
            for node, cell in _cells_of(view).items()
            if all(_free(cell, name) >= n for name, n in groups[0].items())
        )

    def on_nodes(
        self,
        view: HostView,
        allocation: Mapping[str, Mapping[str, int]],
        nodes: Sequence[int],
    ) -> Mapping[str, Mapping[str, int]]:
        """Return an allocation with its amounts of NUMA nodes moved to `nodes`."""
        parts = [taken for taken in allocation.values() if const.RC_CELL_CPU in taken]
        if not parts:
            return allocation
        others = {
            uuid: taken
            for uuid, taken in allocation.items()
            if const.RC_CELL_CPU not in taken
        }
        cells = _cells_of(view)
        return others | {
            cells[node].uuid: part for node, part in zip(nodes, parts, strict=True)
        }

    def shortage(self, wanted: Mapping[str, int], of: list[Provider]) -> Reason | None:
        """Return a reason with the free CPUs and memory of each NUMA node."""
        if const.RC_CELL_CPU not in wanted:
            return None
        found: list[dict[str, Any]] = [
            {
                "node": node_of(cell.name),
                "cpus": cell.total(const.RC_CELL_CPU),
                "free_cpus": _free(cell, const.RC_CELL_CPU),
                "memory_mb": cell.total(const.RC_CELL_MEMORY),
                "free_mb": _free(cell, const.RC_CELL_MEMORY),
            }
            for cell in of
        ]
        return Reason(
            const.PLACEMENT_CELLS,
            {
                "cpus": wanted[const.RC_CELL_CPU],
                "memory_mb": wanted.get(const.RC_CELL_MEMORY, 0),
                "cells": found,
            },
        )

    def settings(self) -> tuple[Setting, ...]:
        """Return the options that isolate enrolled hosts, and fix Nova's node order."""
        return (_ISOLATED, NO_FALLBACK_QUERY, NUMA_PACKING)


CELLS: Final = CellsScheme()


def cell_cpus(policy: Policy, vm_class: VMClass) -> int:
    """Return the number of CPUs that a VM takes of each of its NUMA nodes.

    With the thread policy ``require`` a VM takes whole cores: Nova gives the remaining
    thread of a core to no other VM.
    """
    cpus = vm_class.cell_pcpus
    if vm_class.cpu_thread_policy != "require":
        return cpus
    threads = max(shape.threads for shape in policy.host_shapes)
    return -(-cpus // threads) * threads


def inventories_of(policy: Policy, cell: NUMACell) -> dict[str, Inventory]:
    """Return the inventories of a NUMA node for pinned classes: CPUs and memory (MiB).

    If the classes ask for huge pages, the memory is that of the largest such pool.
    """
    sizes = _huge_pages(policy)
    memory_mb = cell.memory_mb
    if sizes:
        # Memory of one NUMA node of a VM comes from one pool; without a named size
        # assume the largest pool.
        known = {PAGE_SIZES_KB.get(size or "") for size in sizes} - {None}
        memory_mb = 0
        for pool in cell.mempages:
            if pool.size_kb in known or (not known and pool.size_kb >= _HUGE_KB):
                memory_mb = max(memory_mb, pool.size_kb * pool.total // 1024)
    cpus = len(cell.pcpuset)
    if cell.siblings and all(c.smt == "cores" for c in policy.pinned_classes):
        cpus, _ = cell.count_cores()
    amounts = {const.RC_CELL_CPU: cpus, const.RC_CELL_MEMORY: memory_mb}
    return {name: Inventory(n, n) for name, n in amounts.items() if n}


def _huge_pages(policy: Policy) -> AbstractSet[str | None]:
    """Return the huge page sizes (``large``, ``2MB``, ``1GB``) of pinned classes."""
    return {vm_class.mem_page_size for vm_class in policy.pinned_classes} - _SMALL


def node_of(name: str) -> int | None:
    """Return the NUMA node ID in the name of a child provider, or None."""
    number = name.rpartition(f"_perfvm_{const.CELL_SUFFIX}")[2]
    return int(number) if number.isdecimal() else None


def _shares(policy: Policy, resident: Resident) -> list[dict[str, int]]:
    """Return the amounts that a server takes of each of its NUMA nodes.

    The class prescribes the amounts; for a server without a pinned class, they are the
    CPUs and memory that Nova has given the server.
    """
    server, vm_class = resident.server, resident.vm_class
    if server is None:
        return []
    if vm_class is not None and vm_class.pinned:
        mine = vm_class.of_size(server.vcpus)
        memory_mb = server.memory_mb // mine.cells_per_vm
        return [_share(cell_cpus(policy, mine), memory_mb)] * mine.cells_per_vm
    isolated = server.extra_specs.get(const.EMULATOR_THREADS) == "isolate"
    return [
        # Nova pins the CPU for emulator threads on the VM's first NUMA node.
        _share(len(cell.cpu_pinning) + (isolated and not index), cell.memory_mb)
        for index, cell in enumerate(server.cells or ())
        if cell.cpu_pinning
    ]


def _as_run(resident: Resident, shares: list[dict[str, int]]) -> list[dict[str, int]]:
    """Return `shares` with the memory that Nova gives the server on each NUMA node.

    An image can divide the memory unevenly (``hw_numa_mem.0``).
    """
    cells = (resident.server.cells if resident.server else None) or ()
    if len(cells) != len(shares):
        return shares
    return [
        share | {const.RC_CELL_MEMORY: cell.memory_mb}
        for share, cell in zip(shares, cells, strict=True)
    ]


def _share(cpus: int, memory_mb: int) -> dict[str, int]:
    return {const.RC_CELL_CPU: cpus, const.RC_CELL_MEMORY: memory_mb}


def _sizes(share: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(share.items())


def _groups_of(demand: Demand) -> list[Mapping[str, int]]:
    """Return the amounts of a request's groups for NUMA nodes, which are equal."""
    amounts = (group.resources for group in demand.groups)
    return [found for found in amounts if const.RC_CELL_CPU in found]


def _cells_of(view: HostView) -> dict[int, Provider]:
    """Return the NUMA node providers of a host, by NUMA node ID."""
    return {
        node: child
        for child in view.tree
        if (node := node_of(child.name)) is not None
        and const.RC_CELL_CPU in child.inventories
    }


def _free(cell: Provider, name: str) -> int:
    return cell.total(name) - cell.used(name)
