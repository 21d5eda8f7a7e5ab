# SPDX-License-Identifier: Apache-2.0
"""What a host's NUMA nodes have, in an operator's words, and how they are called."""

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
    """Return one line per NUMA node with the arithmetic of a pinned request.

    Empty for requests that are not pinned and of a class: nothing is counted
    per cell for those.
    """
    vm_class = resolve_class(policy, request)
    if vm_class is None or not vm_class.pinned or not request.cells:
        return ()
    vm_class = vm_class.of_size(request.vcpus)
    memory_mb, page_size_kb = cell_memory(request)
    lines = []
    for cell in host.cells:
        usable, free = cell_cpus(vm_class, cell)
        line = (
            f"NUMA node {cell.id}: {max(0, free)} of {usable} pCPUs free, need "
            f"{vm_class.cell_pcpus}; {cell.memory_mb - cell.memory_usage_mb} of "
            f"{cell.memory_mb} MiB free, need {memory_mb}"
        )
        if page_size_kb is not None and not memory_fits(
            cell, memory_mb, page_size_kb, now=True
        ):
            line += " in pages of the requested size, which it has not"
        if cell.pinned_cpus:
            line += f"; pinned {cpuset.format_cpus(cell.pinned_cpus)}"
        if is_foreign(vm_class, len(cell.pinned_cpus)):
            line += f", {no_sum(sorted(vm_class.cell_sizes))}"
        if cell.cpuset:
            line += f"; shared {cpuset.format_cpus(cell.cpuset)}"
        lines.append(line)
    return tuple(lines)


def landing_rank(
    nodes: tuple[int, ...], free_cpus: int, free_devices: int, *, asks: bool
) -> tuple[int, int, int, tuple[int, ...]]:
    """Return the key to sort the NUMA nodes by that a VM may come to: the first wins.

    The fullest nodes come first, so that whole ones stay free for large VMs.  For a VM
    without PCI devices the nodes with the fewest come before that, as Nova sorts them
    (numa_fit_instance_to_host in nova/virt/hardware.py).  For a VM with some, the
    caller puts the nodes near its devices first; here the number of devices decides
    between nodes of equal room.

    :param nodes: by ID, the least first
    :param free_cpus: dedicated CPUs of them that nobody owns
    :param free_devices: PCI devices of them that nobody has, of all kinds
    :param asks: whether the VM asks for PCI devices
    """
    if asks:
        return 0, free_cpus, -free_devices, nodes
    return free_devices, free_cpus, 0, nodes


def unnamed(
    physnets: Mapping[int, AbstractSet[str]], nodes: AbstractSet[int]
) -> list[int]:
    """Return the NUMA nodes of a host whose network in name only is not theirs alone.

    :param physnets: physical networks that have affinity to each node
    :param nodes: those that VMs are to come to; others need have none
    """
    found = []
    for node, every in physnets.items():
        names = {name for name in every if name.startswith(const.CELL_PHYSNET)}
        if names != {f"{const.CELL_PHYSNET}{node}"} and (names or node in nodes):
            found.append(node)
    return sorted(found)
