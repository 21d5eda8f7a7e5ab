# SPDX-License-Identifier: Apache-2.0
"""Units: elastic hosts, one pool for both classes, exclusive by Placement alone.

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
        """Yield what a VM of a class takes of an elastic host.

        A pinned VM takes one child whole, any other VM one unit of every child.
        """
        required = frozenset({self.enrolled_trait(policy)})
        if vm_class.pinned:
            # An amount comes of one provider, in a group without a suffix, too.
            # There Placement leaves out full hosts before it looks at anything else
            # of them.
            yield Group("", {const.RC_UNIT: const.UNITS_PER_CHILD}, required)
            return
        # Hosts with cpu_dedicated_set only, beside elastic ones, have the trait.
        yield Group("", {}, required, self.traits_to_avoid(policy))
        for suffix in const.CHILD_LETTERS[: children_per_host(policy)]:
            yield Group(
                f"_perfvm_{suffix}",
                {const.RC_UNIT: 1},
                required=frozenset({child_trait(suffix)}),
            )

    def enrolled_trait(self, policy: Policy) -> str:
        """Return the trait that elastic hosts have, and flavors require of them."""
        return f"{const.TRAIT_ELASTIC}_{children_per_host(policy)}"

    def tries_each(self, request: RequestFacts) -> bool:
        """Return whether a VM takes a whole child, of which each is a candidate."""
        return request.pinned and request.claimed


UNITS: Final = UnitsScheme()


def children_per_host(policy: Policy) -> int:
    """Return m: declared, or the largest number of VMs of a pinned class on a host.

    No more than there are letters, or the policy is not valid.
    """
    return policy.elastic.slots or largest_slots(
        policy.pinned_classes, policy.host_shapes
    )


def child_trait(suffix: str) -> str:
    """Return the trait of the children with this letter."""
    return f"{const.TRAIT_CHILD}{suffix.upper()}"
