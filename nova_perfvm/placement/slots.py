# SPDX-License-Identifier: Apache-2.0
"""Slots: each VM of a pinned class takes one of those that its host counts.

A host offers slots to one pinned class, by an inventory and a trait of that
class.  With several pinned classes each has names of its own, so that no VM of
one can take, or be forced into, a slot that was counted for another.
"""

from collections.abc import Iterator

from nova_perfvm import constants as const
from nova_perfvm.facts.demand import Group
from nova_perfvm.policy import Policy, VMClass


def resource_class(policy: Policy, vm_class: VMClass) -> str:
    """Return the resource class of the slots of a pinned class."""
    if len(policy.pinned_classes) == 1:
        return const.RC_SLOT
    return f"{const.RC_SLOT}_{vm_class.custom_name}"


def trait(policy: Policy, vm_class: VMClass) -> str:
    """Return the trait of the hosts that offer slots to a pinned class."""
    if len(policy.pinned_classes) == 1:
        return const.TRAIT_HIGH_PERFORMANCE
    return f"{const.CUSTOM_PREFIX}{vm_class.custom_name}"


def is_slot(name: str) -> bool:
    """Return whether a resource class counts slots, of whichever class."""
    return name == const.RC_SLOT or name.startswith(f"{const.RC_SLOT}_")


def traits_to_avoid(policy: Policy) -> frozenset[str]:
    """Return the traits of hosts that VMs which share CPUs keep off.

    Not of hosts that are divided by NUMA node: there they are meant to meet.
    """
    return frozenset(
        trait(policy, vm_class)
        for vm_class in policy.pinned_classes
        if vm_class.exclusive == "host"
    )


def groups(policy: Policy, vm_class: VMClass) -> Iterator[Group]:
    """Yield what a VM of a class takes of a host with slots."""
    if vm_class.pinned:
        yield Group(
            "",
            {resource_class(policy, vm_class): 1},
            required=frozenset({trait(policy, vm_class)}),
        )
    else:
        yield Group("", {}, forbidden=traits_to_avoid(policy))
