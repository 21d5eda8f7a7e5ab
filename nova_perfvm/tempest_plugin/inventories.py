# SPDX-License-Identifier: Apache-2.0
"""What inventories of Placement tell the tests of a host."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from nova_perfvm import constants as const

# {resource class: its inventory}, as GET /resource_providers/{uuid}/inventories
# has them.
Inventories = Mapping[str, Mapping[str, Any]]


def room(
    providers: Iterable[Inventories], extra_specs: Mapping[str, str], most: int
) -> int:
    """Return how many VMs of a flavor a host takes when it is empty.

    Hosts of another shape than the largest, and mixed ones, take fewer than the
    policy allows a host.

    :param providers: those of the compute's tree
    :param extra_specs: of the flavor; each group is met by one provider
    :param most: what no host passes, and all have where the flavor asks for nothing
        of the project's
    """
    groups: dict[str, dict[str, int]] = defaultdict(dict)
    for key, amount in extra_specs.items():
        group, _, name = key.partition(":")
        if group.startswith("resources") and name.startswith(const.CUSTOM_PREFIX):
            groups[group][name] = int(amount)
    tree = list(providers)
    fit = (sum(_times(found, asked) for found in tree) for asked in groups.values())
    return min([most, *fit])


def _times(provider: Inventories, asked: Mapping[str, int]) -> int:
    """Return how often an empty provider gives what is asked for."""
    return min(
        provider[name]["total"] // amount
        if name in provider and amount <= provider[name]["max_unit"]
        else 0
        for name, amount in asked.items()
    )
