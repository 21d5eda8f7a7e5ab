# SPDX-License-Identifier: Apache-2.0
"""VMs of an exclusive class share no host, or no NUMA node, with other classes."""

from typing import Final

from nova_perfvm.facts import HostFacts, Reason
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.printable import number_of
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal
from nova_perfvm.rules.slots import count_vms, host_mode

CLASS_CONFLICT: Final = Refusal(
    "host.class_conflict",
    words=lambda d: d["why"],
    meaning="VMs of another class are on the host or NUMA node",
    advice="migrate them, or wait",
)


def _check(case: HostCase[VMClass]) -> Reason | None:
    if case.vm_class.pinned:
        return _beside_unpinned(case.vm_class, case.host)
    return _beside_pinned(case.policy, case.host)


def _beside_unpinned(vm_class: VMClass, host: HostFacts) -> Reason | None:
    """Refuse an open host where others run: unpinned VMs float over all its CPUs.

    Whether each cell is for one kind is looked at with its room
    (:mod:`nova_perfvm.rules.host.room`).
    """
    if vm_class.exclusive == "none" or host_mode(host) != "open":
        return None
    others, vcpus = unpinned_vms(vm_class, host)
    if not others:
        return None
    return CLASS_CONFLICT.because(
        why=f"the host runs {number_of(others, 'VM')} of another class ({vcpus} vCPUs)"
    )


def unpinned_vms(vm_class: VMClass, host: HostFacts) -> tuple[int, int]:
    """Count the VMs on a host that own no CPUs, and their vCPUs.

    A hint, made for hosts of the mode ``open``: what the host has beyond VMs of
    the class, whose pins tell them.  (0, 0) unless both figures are above 0.
    """
    # vcpus_used alone cannot tell such VMs: it starts at reserved_host_cpus.
    # Nor can num_instances: VMs moving in are pinned before they are counted.
    mine = count_vms(vm_class, host)
    others = host.num_instances - mine.least
    vcpus = host.vcpus_used - mine.vcpus
    return (others, vcpus) if others > 0 and vcpus > 0 else (0, 0)


def _beside_pinned(policy: Policy, host: HostFacts) -> Reason | None:
    """Keep VMs that share CPUs from those that want a host or a cell."""
    cells = host.cells
    if not any(cell.pinned_cpus for cell in cells):
        return None
    for vm_class in policy.pinned_classes:
        if vm_class.exclusive == "none":
            continue
        if host.labels and vm_class.name not in host.labels:
            continue
        share = vm_class.least_cell_vcpus
        for cell in cells:
            pins = len(cell.pinned_cpus)
            # Pins below one VM's share cannot be a VM of that class.  From
            # there on they may be; five VMs of 4 CPUs look like one of 20.
            if pins >= share and (vm_class.exclusive == "host" or cell.cpuset):
                return CLASS_CONFLICT.because(
                    why=f"NUMA node {cell.id} has {pins} pinned CPUs, so a VM of class "
                    f"{vm_class.name} may run there, which shares with no other class"
                )
    return None


RULE: Final = HostRule(120, _check, (CLASS_CONFLICT,), vms=("pinned", "shared"))
