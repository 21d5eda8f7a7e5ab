# SPDX-License-Identifier: Apache-2.0
"""Count from Placement's inventories how many VMs a host takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from nova_perfvm import constants as const

# {resource class: inventory}, as GET /resource_providers/{uuid}/inventories returns.
Inventories = Mapping[str, Mapping[str, Any]]


def room(
    providers: Iterable[Inventories], extra_specs: Mapping[str, str], most: int
) -> int:
    """Return the number of VMs of a flavor that an empty host takes.

    Smaller and mixed hosts take fewer than the policy's ``max_per_host``.

    :param providers: inventories of each provider of the compute's tree
    :param extra_specs: the flavor's; one provider satisfies each request group
    :param most: the policy's ``max_per_host``, the result where the flavor requests no
        resource class of nova_perfvm
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
    """Return how many times an empty provider satisfies a request group."""
    return min(
        provider[name]["total"] // amount
        if name in provider and amount <= provider[name]["max_unit"]
        else 0
        for name, amount in asked.items()
    )
