# SPDX-License-Identifier: Apache-2.0
"""How many VMs hosts have room for, as far as CPUs go."""

from collections.abc import Iterable, Sequence

from nova_perfvm.policy.classes import VMClass
from nova_perfvm.policy.shapes import HostShape


def groups_of(shares: Sequence[int], cells_per_vm: int) -> int:
    """Count the VMs that fit when each takes a share of k different cells.

    :param shares: how many each cell has

    m VMs fit exactly when the cells, none giving more than m shares, have k * m
    together: each VM then takes its k shares from different cells.
    """
    if cells_per_vm == 1:
        return sum(shares)
    most = sum(shares) // cells_per_vm
    while most and sum(min(s, most) for s in shares) < cells_per_vm * most:
        most -= 1
    return most


def cell_slots(vm_class: VMClass, shape: HostShape) -> int:
    """Count the shares of each NUMA node; 0 for a class whose CPUs are not known."""
    need = vm_class.cell_pcpus
    return shape.cell_cpus(vm_class.smt) // need if need else 0


def shape_slots(vm_class: VMClass, shape: HostShape) -> int:
    """Count the VMs that an empty host of a shape holds, capped by max_per_host."""
    shares = [cell_slots(vm_class, shape)] * shape.cells
    return vm_class.capped(groups_of(shares, vm_class.cells_per_vm))


def largest_slots(classes: Iterable[VMClass], shapes: Sequence[HostShape]) -> int:
    """Return the largest number of VMs of a pinned class on a host of any shape."""
    return max((shape_slots(c, s) for c in classes for s in shapes), default=0)
