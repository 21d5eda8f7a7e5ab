# SPDX-License-Identifier: Apache-2.0
"""NUMA nodes of a host: describe their room, rank them, check their physnet names."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from nova_perfvm import constants as const
from nova_perfvm import cpuset
from nova_perfvm.facts import HostFacts, RequestFacts
from nova_perfvm.policy import Policy
from nova_perfvm.rules.classes import resolve_class
from nova_perfvm.rules.host.room import cell_memory
from nova_perfvm.rules.slots import cell_cpus, is_foreign, memory_fits, no_sum


def describe_cells(
    policy: Policy, request: RequestFacts, host: HostFacts
) -> tuple[str, ...]:
    """Describe each NUMA node of a host: room free and needed, pins and shared CPUs.

    Return one line per NUMA node; none unless the request asks for NUMA nodes.
    """
    if not request.cells:
        return ()
    vm_class = resolve_class(policy, request)
    pinned = vm_class.of_size(request.vcpus) if vm_class and vm_class.pinned else None
    need = pinned.cell_pcpus if pinned else max(one.pcpus for one in request.cells)
    memory_mb, page_size_kb = cell_memory(request)
    lines = []
    for cell in host.cells:
        usable, free = (
            cell_cpus(pinned, cell)
            if pinned
            else (len(cell.pcpuset), len(cell.free_pcpus))
        )
        line = (
            f"NUMA node {cell.id}: {max(0, free)} of {usable} pCPUs free, need {need}; "
            f"{cell.memory_mb - cell.memory_usage_mb} of {cell.memory_mb} MiB free, "
            f"need {memory_mb}"
        )
        if page_size_kb is not None and not memory_fits(
            cell, memory_mb, page_size_kb, now=True
        ):
            line += " in pages of the requested size: too few are free"
        if cell.pinned_cpus:
            line += f"; pinned {cpuset.format_cpus(cell.pinned_cpus)}"
        if pinned and is_foreign(pinned, len(cell.pinned_cpus)):
            line += f", {no_sum(sorted(pinned.cell_sizes))}"
        if cell.cpuset:
            line += f"; shared {cpuset.format_cpus(cell.cpuset)}"
        lines.append(line)
    return tuple(lines)


def landing_rank(
    nodes: tuple[int, ...], free_cpus: int, free_devices: int, *, asks: bool
) -> tuple[int, int, int, tuple[int, ...]]:
    """Return the sort key of a set of NUMA nodes for a VM: the VM gets the lowest.

    A VM without PCI devices goes to the nodes with the fewest free PCI devices, as in
    Nova (numa_fit_instance_to_host in nova/virt/hardware.py), then to those with the
    fewest free CPUs, so that empty nodes stay free for large VMs.  A VM with PCI
    devices goes to the nodes with the fewest free CPUs, then the most free devices;
    the caller has to sort by distance to its devices first.

    :param nodes: IDs of the NUMA nodes, ascending
    :param free_cpus: free dedicated CPUs on the nodes
    :param free_devices: free PCI devices on the nodes, of all kinds
    :param asks: whether the VM asks for PCI devices
    """
    if asks:
        return 0, free_cpus, -free_devices, nodes
    return free_devices, free_cpus, 0, nodes


def unnamed(
    physnets: Mapping[int, AbstractSet[str]], nodes: AbstractSet[int]
) -> list[int]:
    """Return the NUMA nodes of a host that lack their marker physnet or have another's.

    The marker of node N is ``const.CELL_PHYSNET`` followed by N: a physical network
    that exists in Nova's configuration only, to bind a VM to the node.

    :param physnets: physical networks with affinity to each node, by node ID
    :param nodes: nodes that need their marker; other nodes may go without
    """
    found = []
    for node, every in physnets.items():
        names = {name for name in every if name.startswith(const.CELL_PHYSNET)}
        if names != {f"{const.CELL_PHYSNET}{node}"} and (names or node in nodes):
            found.append(node)
    return sorted(found)
