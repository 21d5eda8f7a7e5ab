# SPDX-License-Identifier: Apache-2.0
"""Elastic hosts: one pool for both classes, exclusive by Placement alone.

Flat inventories cannot express "either two high-performance VMs or any number
of general ones": if both extremes fit, so does a mixture.  Child providers can.
Each host has m of them with N units each; a high-performance VM takes all N
units of one child, a general VM one unit of every child.  So any general VM
blocks high-performance ones, any high-performance VM blocks general ones, and
m high-performance VMs fit.

Flavors are the same in the whole cloud, so every host has m children, m being
the largest number of slots that the policy gives any host, or what it declares
for hosts to grow to.  On a host with fewer, no VM can take the whole of a surplus
child: its max_unit is N - 1.

All this holds only between VMs whose flavors agree on N and m, and a server keeps
the flavor that it was made with.  So N is a constant, and m is part of the trait
that flavors require of a host.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from nova_perfvm import constants as const
from nova_perfvm.facts.demand import Group
from nova_perfvm.placement import slots
from nova_perfvm.policy import Policy, VMClass, largest_slots

SUFFIXES = const.CHILD_LETTERS


@dataclass(frozen=True, slots=True)
class Child:
    """One child provider of a host as it should be.

    :ivar name: name of the resource provider
    :ivar trait: the trait by which general flavors tell it from its siblings
    :ivar total: units of it
    :ivar max_unit: units that one VM may take at most
    """

    name: str
    trait: str
    total: int
    max_unit: int


def children_per_host(policy: Policy) -> int:
    """Return m: declared, or the largest number of VMs of a pinned class on a host.

    No more than there are letters, or the policy is not valid.
    """
    return policy.elastic.slots or largest_slots(policy)


def most_slots(policy: Policy) -> int:
    """Return the largest number of slots that a host of any shape may have."""
    count = children_per_host(policy)
    return max((c.capped(count) for c in policy.pinned_classes), default=0)


def usable_slots(policy: Policy, slots: int) -> int:
    """Return how many of a host's slots VMs can take: under units, one a child."""
    if policy.placement != "units":
        return slots
    return min(slots, most_slots(policy))


def elastic_trait(policy: Policy) -> str:
    """Return the trait that elastic hosts have, and flavors require of them."""
    return f"{const.TRAIT_ELASTIC}_{children_per_host(policy)}"


def children_of(trait: str) -> int:
    """Return the m of a trait of elastic hosts."""
    return int(trait.rpartition("_")[2])


def child_trait(suffix: str) -> str:
    """Return the trait of the children with this letter."""
    return f"{const.TRAIT_CHILD}{suffix.upper()}"


def child_name(provider_name: str, suffix: str) -> str:
    """Return the name of a host's child provider with this letter."""
    return f"{provider_name}_perfvm_{suffix}"


def host_name(child: str) -> str:
    """Return the name of the provider of the host that a child's name tells."""
    return child.rpartition("_perfvm_")[0]


def is_child_name(name: str) -> bool:
    """Return whether a provider has a name as children of hosts have it."""
    before, _, suffix = name.rpartition("_perfvm_")
    return bool(before) and len(suffix) == 1 and suffix in SUFFIXES


def children(policy: Policy, provider_name: str, slots: int) -> tuple[Child, ...]:
    """Return the child providers of a host.

    :param provider_name: the compute's provider, which is its hypervisor name
    :param slots: how many high-performance VMs the host may have; 0 for a host
        of general VMs only
    """
    units = const.UNITS_PER_CHILD
    return tuple(
        Child(
            name=child_name(provider_name, suffix),
            trait=child_trait(suffix),
            total=units,
            max_unit=units if index < slots else units - 1,
        )
        for index, suffix in enumerate(SUFFIXES[: children_per_host(policy)])
    )


def groups(policy: Policy, vm_class: VMClass) -> Iterator[Group]:
    """Yield what a VM of a class takes of an elastic host.

    A pinned VM takes one child whole, any other VM one unit of every child.
    """
    required = frozenset({elastic_trait(policy)})
    if vm_class.pinned:
        # An amount comes of one provider, in a group without a suffix, too.  There
        # Placement leaves out full hosts before it looks at anything else of them.
        yield Group("", {const.RC_UNIT: const.UNITS_PER_CHILD}, required)
        return
    # Hosts with cpu_dedicated_set only, beside elastic ones, have the trait.
    yield Group("", {}, required, slots.traits_to_avoid(policy))
    for suffix in SUFFIXES[: children_per_host(policy)]:
        yield Group(
            f"_perfvm_{suffix}",
            {const.RC_UNIT: 1},
            required=frozenset({child_trait(suffix)}),
        )
