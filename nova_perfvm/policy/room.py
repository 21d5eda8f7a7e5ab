# SPDX-License-Identifier: Apache-2.0
"""Count the VMs that fit empty hosts by their CPUs."""

from collections.abc import Iterable, Sequence

from nova_perfvm.policy.classes import VMClass
from nova_perfvm.policy.shapes import HostShape


def groups_of(shares: Sequence[int], cells_per_vm: int) -> int:
    """Count the VMs that fit if each takes a share on ``cells_per_vm`` NUMA nodes.

    With k nodes per VM, m VMs fit if and only if the nodes together have k * m shares,
    counting at most m of each node, as a VM takes its shares on different nodes.

    :param shares: number of free shares on each NUMA node
    """
    if cells_per_vm == 1:
        return sum(shares)
    most = sum(shares) // cells_per_vm
    while most and sum(min(s, most) for s in shares) < cells_per_vm * most:
        most -= 1
    return most


def cell_slots(vm_class: VMClass, shape: HostShape) -> int:
    """Count the shares per NUMA node of a shape; 0 for a class that is not pinned."""
    if vm_class.cpu_thread_policy == "require" and shape.threads == 1:
        # nova/virt/hardware.py, _pack_instance_onto_cores
        return 0
    need = vm_class.cell_takes(shape.threads)
    return shape.cell_cpus(vm_class.smt) // need if need else 0


def shape_slots(vm_class: VMClass, shape: HostShape) -> int:
    """Count the VMs that fit an empty host of a shape, at most ``max_per_host``."""
    shares = [cell_slots(vm_class, shape)] * shape.cells
    return vm_class.capped(groups_of(shares, vm_class.cells_per_vm))


def largest_slots(classes: Iterable[VMClass], shapes: Sequence[HostShape]) -> int:
    """Return the largest number of VMs of a pinned class on a host of any shape."""
    return max((shape_slots(c, s) for c in classes for s in shapes), default=0)
