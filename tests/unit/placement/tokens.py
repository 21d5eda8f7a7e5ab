# SPDX-License-Identifier: Apache-2.0
"""A toy scheme: a VM of a pinned class takes two of a host's tokens."""

from collections.abc import Iterator
from dataclasses import replace

from nova_perfvm.facts.demand import Group
from nova_perfvm.facts.snapshot import Inventory
from nova_perfvm.placement.schemes.scheme import HostOffer, Scheme
from nova_perfvm.policy import Policy, VMClass

TOKEN = "CUSTOM_PERFVM_TOKEN"


class TokensScheme(Scheme):
    """``placement: tokens``."""

    name = "tokens"
    summary = "hosts have two tokens for each high-performance VM"
    resource_class = TOKEN

    def groups(self, policy: Policy, vm_class: VMClass) -> Iterator[Group]:
        """Yield two tokens for a pinned VM."""
        (group,) = super().groups(policy, vm_class)
        yield replace(group, resources=dict.fromkeys(group.resources, 2))

    def offers(
        self, policy: Policy, vm_class: VMClass | None, mode: str, slots: int
    ) -> HostOffer:
        """Return two tokens for each slot."""
        offer = super().offers(policy, vm_class, mode, slots)
        tokens = {name: Inventory(2 * slots, 2) for name in offer.inventories}
        return offer._replace(inventories=tokens)


TOKENS = TokensScheme()
