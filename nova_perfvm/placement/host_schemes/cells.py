# SPDX-License-Identifier: Apache-2.0
"""The NUMA nodes of hosts in Placement; :mod:`nova_perfvm.placement.schemes.cells`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.facts import NUMACell, Reason
from nova_perfvm.facts.children import cell_name, node_of
from nova_perfvm.facts.demand import Demand
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Inventory, Provider
from nova_perfvm.placement.host_schemes.host_scheme import Child, HostOffer, HostScheme
from nova_perfvm.placement.host_schemes.residents import Division, Holding, Resident
from nova_perfvm.placement.schemes.cells import CELLS, cell_cpus
from nova_perfvm.placement.settings import (
    ISOLATED_AGGREGATES,
    NO_FALLBACK_QUERY,
    NUMA_PACKING,
)
from nova_perfvm.policy import PAGE_SIZES_KB, SMALL_PAGES, Policy, VMClass
from nova_perfvm.policy.room import groups_of

_ISOLATED: Final = replace(
    ISOLATED_AGGREGATES,
    why="Keeps VMs whose flavors ask for no NUMA node off enrolled hosts.",
    otherwise="VMs that ask for no NUMA node come to enrolled hosts",
)


class CellsHosts(HostScheme):
    """Hosts under ``placement: cells``."""

    modes = ("dedicated", "shared")
    enrolled_modes = ("dedicated",)
    enrolled_prefix = const.TRAIT_CELLS
    # No Nova API shows NUMA nodes.
    enroll_options = ("--from-nova-db",)
    noun = "NUMA nodes"
    # These keep pinned VMs on enrolled NUMA nodes, and other VMs off.
    settings = (_ISOLATED, NO_FALLBACK_QUERY, NUMA_PACKING)

    def offers(
        self, policy: Policy, vm_class: VMClass | None, mode: str, slots: int
    ) -> HostOffer:
        """Return the inventory of slots of a class with ``max_per_host``.

        Without the trait, which enrolling adds.
        """
        return HostOffer(super().offers(policy, vm_class, mode, slots).inventories)

    def children(self, policy: Policy, view: HostView, slots: int) -> tuple[Child, ...]:
        """Return a child for each NUMA node with dedicated CPUs.

        Existing children stay where the host's NUMA nodes are unknown.
        """
        made = {
            cell_name(view.root.name, cell.id): inventories_of(policy, cell)
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

    def inventory(self, policy: Policy, slots: Mapping[str, int]) -> dict[str, str]:
        """Return the trait and inventories of an empty host, as texts."""
        found = super().inventory(policy, slots)
        return {"trait": self.scheme.enrolled_trait(policy), **found}

    def slots_seen(self, tree: Sequence[Provider]) -> tuple[int, int] | None:
        """Return None: VMs of several sizes share no unit of slots."""
        return None

    def unfit(self, policy: Policy, view: HostView) -> str:
        """Return why the NUMA nodes of a host cannot be divided."""
        if view.root.mode != "dedicated":
            return (
                f"{view.host} is {view.root.mode}, and NUMA nodes are counted on hosts "
                "that have [compute]cpu_dedicated_set alone: nova-perfvm host config"
            )
        if not view.compute.cells_told:
            return (
                f"the NUMA nodes of {view.host} are {view.compute.cells_source}, and "
                "Placement would count them: read them by --from-nova-db on a "
                "controller, or name the file of host collect (--collected) or an "
                "--inventory"
            )
        if _huge_pages(policy) and not view.compute.pages_told:
            return (
                "classes of the policy ask for huge pages, and the pages of "
                f"{view.host}'s NUMA nodes are in Nova's database alone: read it by "
                "--from-nova-db on a controller"
            )
        return self.mixed_pages(policy, view)

    def mixed_pages(self, policy: Policy, view: HostView) -> str:
        """Return why Placement cannot count a host's huge pages; empty if it can."""
        pools = (pool for cell in view.facts.cells for pool in cell.mempages)
        sizes = {p.size_kb for p in pools if p.total and p.size_kb >= const.HUGE_KB}
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
        """Return whether a server has a class, or pinned CPUs without a class."""
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
        """Give each VM its share of the NUMA nodes that Nova runs it on."""
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
        """Return a server's share of each NUMA node that Nova runs it on."""
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

    def shortage(self, wanted: Mapping[str, int], of: list[Provider]) -> Reason | None:
        """Return the reason with free CPUs and memory of each NUMA node.

        None for a part without CPUs of NUMA nodes.
        """
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


HOSTS: Final = CellsHosts(CELLS)


def nodes_offered(view: HostView, demand: Demand) -> frozenset[int] | None:
    """Return the NUMA nodes of a host with room for a request's first node group.

    None if the request has no group for NUMA nodes.
    """
    groups = _groups_of(demand)
    if not groups:
        return None
    return frozenset(
        node
        for node, cell in _cells_of(view).items()
        if all(_free(cell, name) >= n for name, n in groups[0].items())
    )


def on_nodes(
    view: HostView,
    allocation: Mapping[str, Mapping[str, int]],
    nodes: Sequence[int],
) -> Mapping[str, Mapping[str, int]]:
    """Return an allocation, by provider's UUID, moved to other NUMA nodes of a host."""
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


def inventories_of(policy: Policy, cell: NUMACell) -> dict[str, Inventory]:
    """Return the inventories of a NUMA node for pinned classes.

    The memory is huge pages only, if a pinned class asks for huge pages.
    """
    sizes = _huge_pages(policy)
    memory_mb = cell.memory_mb
    if sizes:
        # A VM takes pages of one size: without a named size, of the largest pool.
        known = {PAGE_SIZES_KB.get(size or "") for size in sizes} - {None}
        memory_mb = 0
        for pool in cell.mempages:
            if pool.size_kb in known or (not known and pool.size_kb >= const.HUGE_KB):
                memory_mb = max(memory_mb, pool.size_kb * pool.total // 1024)
    cpus = len(cell.pcpuset)
    if cell.siblings and all(c.smt == "cores" for c in policy.pinned_classes):
        cpus, _ = cell.count_cores()
    amounts = {const.RC_CELL_CPU: cpus, const.RC_CELL_MEMORY: memory_mb}
    return {name: Inventory(n, n) for name, n in amounts.items() if n}


def _huge_pages(policy: Policy) -> AbstractSet[str | None]:
    """Return the sizes of huge pages that pinned classes ask for."""
    return {vm_class.mem_page_size for vm_class in policy.pinned_classes} - SMALL_PAGES


def _shares(policy: Policy, resident: Resident) -> list[dict[str, int]]:
    """Return a server's CPUs and memory on each of its NUMA nodes.

    Without a pinned class they are the pinned CPUs and memory of Nova's topology.
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
        # The isolated CPU for QEMU's own threads is on the first node.
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
    """Return the resources of a request's groups for NUMA nodes, one per node."""
    amounts = (group.resources for group in demand.groups)
    return [found for found in amounts if const.RC_CELL_CPU in found]


def _cells_of(view: HostView) -> dict[int, Provider]:
    """Return {NUMA node: child provider} of a host."""
    return {
        node: child
        for child in view.tree
        if (node := node_of(child.name)) is not None
        and const.RC_CELL_CPU in child.inventories
    }


def _free(cell: Provider, name: str) -> int:
    return cell.total(name) - cell.used(name)
