# SPDX-License-Identifier: Apache-2.0
"""The scheme ``units``: elastic hosts, which serve one class at a time by Placement.

An inventory of the host's own provider cannot express "either two high-performance VMs
or any number of general VMs": if both extremes fit, so does a mixture.  Child providers
can.  Each host has m children with N units each; a high-performance VM takes all N
units of one child, a general VM one unit of every child.  So a general VM blocks
high-performance VMs, a high-performance VM blocks general VMs, and m high-performance
VMs fit.

A flavor serves the whole cloud, so every host has m children: as many as the largest
host of the policy has slots, or as ``elastic: {slots: m}`` declares for larger hosts to
come.  On a host with fewer slots, a surplus child has a max_unit of N - 1, so no VM can
take the whole child.

The scheme works only among VMs whose flavors agree on N and m, and a server keeps the
flavor of its creation.  So N is a constant, and the trait that flavors require names m.
"""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.facts import RequestFacts
from nova_perfvm.facts.placement_request import Group
from nova_perfvm.placement.schemes.scheme import Scheme
from nova_perfvm.policy import Policy, VMClass, largest_slots


class UnitsScheme(Scheme):
    """``placement: units``."""

    name = "units"
    summary = "hosts are elastic: child providers with units"
    resource_class = const.RC_UNIT
    enrolls = True

    def groups(
        self, policy: Policy, vm_class: VMClass, memory_mb: int
    ) -> Iterator[Group]:
        """Yield the groups of a VM's request.

        A pinned VM takes all units of one child, any other VM one unit of every child.
        """
        required = frozenset({self.enrolled_trait(policy)})
        if vm_class.pinned:
            # No suffix is needed, as one provider has to give the whole amount.  For
            # the unsuffixed group Placement drops full hosts first, which is faster.
            yield Group("", {const.RC_UNIT: const.UNITS_PER_CHILD}, required)
            return
        # Dedicated hosts in a pool of elastic hosts have the trait to avoid.
        yield Group("", {}, required, self.traits_to_avoid(policy))
        for suffix in const.CHILD_LETTERS[: children_per_host(policy)]:
            yield Group(
                f"_perfvm_{suffix}",
                {const.RC_UNIT: 1},
                required=frozenset({child_trait(suffix)}),
            )

    def enrolled_trait(self, policy: Policy) -> str:
        """Return the trait of elastic hosts with m children, which flavors require."""
        return f"{const.TRAIT_ELASTIC}_{children_per_host(policy)}"

    def tries_each(self, request: RequestFacts) -> bool:
        """Return whether a VM takes a whole child, so each child is a candidate."""
        return request.pinned and request.claimed


UNITS: Final = UnitsScheme()


def children_per_host(policy: Policy) -> int:
    """Return m: the policy's ``elastic: {slots: m}``, or the slots of its largest host.

    A valid policy has at most as many as ``const.CHILD_LETTERS``.
    """
    return policy.elastic.slots or largest_slots(
        policy.pinned_classes, policy.host_shapes
    )


def child_trait(suffix: str) -> str:
    """Return the trait of the child with this letter on each host."""
    return f"{const.TRAIT_CHILD}{suffix.upper()}"
