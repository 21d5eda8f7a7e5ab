# SPDX-License-Identifier: Apache-2.0
"""A toy scheme: a VM of a pinned class takes two of a host's tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from nova_perfvm.facts.placement_request import Group
from nova_perfvm.facts.snapshot import Provider
from nova_perfvm.placement.host_schemes import HostScheme
from nova_perfvm.placement.schemes.scheme import Scheme
from nova_perfvm.policy import Policy, VMClass

TOKEN = "CUSTOM_PERFVM_TOKEN"


class TokensScheme(Scheme):
    """``placement: tokens``."""

    name = "tokens"
    summary = "hosts have two tokens for each high-performance VM"
    resource_class = TOKEN

    def groups(
        self, policy: Policy, vm_class: VMClass, memory_mb: int
    ) -> Iterator[Group]:
        """Yield two tokens for a pinned VM."""
        (group,) = super().groups(policy, vm_class, memory_mb)
        yield replace(group, resources=dict.fromkeys(group.resources, 2))


class TokensHosts(HostScheme):
    """Hosts under ``placement: tokens``."""

    def slots_seen(self, tree: Sequence[Provider]) -> tuple[int, int] | None:
        """Return half of the tokens, and half of those that are taken."""
        seen = super().slots_seen(tree)
        return seen and (seen[0] // 2, seen[1] // 2)


TOKENS = TokensScheme()
HOSTS = TokensHosts(TOKENS)
