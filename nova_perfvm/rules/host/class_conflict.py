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
    """Refuse a pinned VM on an open host with unpinned VMs, which use all its CPUs.

    For ``exclusive: cell``, :mod:`nova_perfvm.rules.host.room` also judges each node.
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
    """Estimate the unpinned VMs on an open host, and their vCPUs.

    The estimate subtracts the VMs of the pinned class, counted by their pins, from
    the host's instances and used vCPUs.  (0, 0) unless both differences are above 0.
    """
    # Neither figure suffices: vcpus_used starts at reserved_host_cpus, and
    # num_instances lacks VMs that are moving in, whose CPUs are pinned already.
    mine = count_vms(vm_class, host)
    others = host.num_instances - mine.least
    vcpus = host.vcpus_used - mine.vcpus
    return (others, vcpus) if others > 0 and vcpus > 0 else (0, 0)


def _beside_pinned(policy: Policy, host: HostFacts) -> Reason | None:
    """Refuse a VM that shares CPUs where the pins may be a VM of an exclusive class."""
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
            # From one VM's share on, pins may be a VM of the class: five VMs of
            # 4 CPUs look like one of 20.
            if pins >= share and (vm_class.exclusive == "host" or cell.cpuset):
                return CLASS_CONFLICT.because(
                    why=f"NUMA node {cell.id} has {pins} pinned CPUs, so a VM of class "
                    f"{vm_class.name} may run there, which tolerates no other class"
                )
    return None


RULE: Final = HostRule(120, _check, (CLASS_CONFLICT,), vms=("pinned", "shared"))
