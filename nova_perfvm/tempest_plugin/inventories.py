# SPDX-License-Identifier: Apache-2.0
"""What inventories of Placement tell the tests of a host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from nova_perfvm.facts.snapshot import Inventory, Provider
from nova_perfvm.placement.schemes import SCHEMES

# {resource class: its inventory}, as GET /resource_providers/{uuid}/inventories
# has them.
Inventories = Mapping[str, Mapping[str, Any]]


def room(providers: Iterable[Inventories], placement: str, most: int) -> int:
    """Return how many high-performance VMs a host takes when it is empty.

    Hosts of another shape than the largest, and mixed ones, take fewer than the
    policy allows a host.

    :param providers: those of the compute's tree
    :param placement: the policy's key of the same name
    :param most: what no host passes, and all have as far as Placement knows where
        it counts nothing
    """
    scheme = SCHEMES[placement]
    tree = [
        Provider("", "", 0, {n: Inventory(**found) for n, found in provider.items()})
        for provider in map(_sizes, providers)
    ]
    if not scheme.counts:
        return most
    slots, _ = scheme.slots_seen(tree) or (0, 0)
    return min(slots, most)


def _sizes(inventories: Inventories) -> dict[str, dict[str, int]]:
    return {
        name: {key: found.get(key, 0) for key in ("total", "max_unit")}
        for name, found in inventories.items()
    }
