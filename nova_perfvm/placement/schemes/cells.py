# SPDX-License-Identifier: Apache-2.0
"""Cells: each NUMA node of a dedicated host is a provider with CPUs and memory.

So Placement offers no host on whose NUMA nodes a VM does not fit, whatever sizes are
mixed there, and claims of several schedulers never meet on a node.  A flavor asks in
a group of its own for each NUMA node of the VM.

nova-compute chooses a node by itself, and would choose another one than Placement did.
:mod:`nova_perfvm.scheduler.numa_filter` keeps it to that of the claim: hosts have a
physical network for each node, in name only, and the limits of a claim name it.
"""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.facts.placement_request import Group
from nova_perfvm.placement.schemes.scheme import Scheme
from nova_perfvm.policy import Policy, VMClass


class CellsScheme(Scheme):
    """``placement: cells``."""

    name = "cells"
    summary = "NUMA nodes of hosts are child providers"
    resource_class = const.RC_CELL_CPU
    enrolls = True
    steers = True
    mixes = True

    def groups(
        self, policy: Policy, vm_class: VMClass, memory_mb: int
    ) -> Iterator[Group]:
        """Yield what a VM of a class takes: a group for each of its NUMA nodes."""
        if not vm_class.pinned:
            yield Group("", {}, forbidden=self.traits_to_avoid(policy))
            return
        slot = self.slot_class(policy, vm_class)
        # Where the group without a suffix required the trait, Placement would read the
        # traits of all hosts that have so many CPUs, on whatever NUMA nodes.  To
        # Nova's isolated aggregates the trait of any group counts.
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
        """Return that NUMA nodes of a VM are to be different ones of its host."""
        return "isolate" if vm_class.cells_per_vm > 1 else "none"

    def slot_class(self, policy: Policy, vm_class: VMClass) -> str:
        """Return what counts VMs of a class whose number on a host is limited."""
        if vm_class.max_per_host is None:
            return ""
        return self._slot_class(policy, vm_class, const.RC_SLOT)

    def trait(self, policy: Policy, vm_class: VMClass) -> str:
        """Return the trait of hosts with cells: all pinned classes share these."""
        return self.enrolled_trait(policy)

    def traits_to_avoid(self, policy: Policy) -> frozenset[str]:
        """Return the trait of hosts with cells."""
        return frozenset({self.enrolled_trait(policy)})

    def enrolled_trait(self, policy: Policy) -> str:
        """Return the trait of hosts whose NUMA nodes Placement knows."""
        return const.TRAIT_CELLS


CELLS: Final = CellsScheme()


def cell_cpus(policy: Policy, vm_class: VMClass) -> int:
    """Return how many CPUs a VM takes of each NUMA node that it is on.

    Under thread policy ``require`` it takes whole cores, of which Nova gives a thread
    that is left over to nobody.
    """
    cpus = vm_class.cell_pcpus
    if vm_class.cpu_thread_policy != "require":
        return cpus
    threads = max(shape.threads for shape in policy.host_shapes)
    return -(-cpus // threads) * threads
