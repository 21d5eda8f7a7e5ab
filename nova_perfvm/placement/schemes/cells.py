# SPDX-License-Identifier: Apache-2.0
"""The scheme ``cells``: each NUMA node of a dedicated host is a resource provider.

The providers have CPUs and memory, so Placement offers only hosts on whose NUMA nodes a
VM fits, whatever sizes of VMs are mixed there, and concurrent claims cannot overbook a
node.  A flavor has a group for each NUMA node of the VM.

nova-compute would choose other nodes than Placement.
:mod:`nova_perfvm.scheduler.steering` makes it use the allocated nodes, by a marker
physical network for each node, which the limits of a claim name.
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

    def enrolled_trait(self, policy: Policy) -> str:
        """Return the trait of hosts whose NUMA nodes are providers."""
        return const.TRAIT_CELLS


CELLS: Final = CellsScheme()


def cell_cpus(policy: Policy, vm_class: VMClass) -> int:
    """Return the number of CPUs that a VM takes of each of its NUMA nodes."""
    threads = max(shape.threads for shape in policy.host_shapes)
    return vm_class.cell_takes(threads, mixed=True)
