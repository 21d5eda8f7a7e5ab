# SPDX-License-Identifier: Apache-2.0
"""The NUMA cells that nova-compute will report, and the slots they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm.facts import NUMACell
from nova_perfvm.rules import host_slots

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from nova_perfvm.generate.hosts.cpus import CPUSets
    from nova_perfvm.generate.hosts.memory import NodeMemory
    from nova_perfvm.generate.hosts.topology import Topology
    from nova_perfvm.policy import VMClass


def cells_of(
    topology: Topology, cpus: CPUSets, memory: Iterable[NodeMemory]
) -> tuple[NUMACell, ...]:
    """Return a configured, empty host's cells, memory of the host itself left out.

    Nova counts a cell's whole memory and Placement the host's less what is
    reserved; a slot must fit both.  Memory that is not known counts as none.
    """
    return tuple(
        NUMACell(
            id=node.id,
            cpuset=node.cpus & (cpus.shared | cpus.either),
            pcpuset=node.cpus & cpus.pinnable,
            pinned_cpus=frozenset(),
            memory_mb=share.vms_mb or 0,
            memory_usage_mb=0,
            siblings=_siblings(node.cores, cpus.pinnable | cpus.shared),
        )
        for node, share in zip(topology.nodes, memory, strict=True)
    )


def _siblings(
    cores: Iterable[tuple[int, ...]], usable: frozenset[int]
) -> tuple[frozenset[int], ...]:
    """Return the threads of each core that VMs may use, as Nova lists them."""
    kept = (frozenset(core) & usable for core in cores)
    return tuple(threads for threads in kept if threads)


def count_slots(
    vm_class: VMClass | None, cells: Sequence[NUMACell], *, memory_known: bool
) -> int:
    """Count the VMs of the class that an empty host holds; 0 without a class."""
    if vm_class is None:
        return 0
    return host_slots(vm_class, cells, None if memory_known else 0)
