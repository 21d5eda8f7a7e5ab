# SPDX-License-Identifier: Apache-2.0
"""What tells hosts from each other for whoever fits NUMA topologies onto them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, Final

from nova.objects import base
from nova.scheduler.host_manager import HostState

# What an object of Nova's holds beside its fields, and no verdict rests on.
_ASIDE: Final = frozenset({"_changed_fields", "_context"})


def state_of(host_state: HostState) -> Hashable:
    """Return the same for two hosts where each request fits onto both or neither.

    :raises TypeError: when hashed, for what has no hash
    """
    return (
        host_state.cpu_allocation_ratio,
        host_state.ram_allocation_ratio,
        _state(host_state.numa_topology),
        # The cells with devices are tried last, and which comes first matters: Nova
        # writes into the topology while it tries.
        frozenset(free_devices(host_state).items()),
    )


def _state(value: Any) -> Hashable:
    """Return what tells a value of Nova's objects from another, all that it holds."""
    if isinstance(value, base.NovaObject):
        # The attributes behind the fields: reading these is half of the cost.
        return tuple(
            [
                (name, _state(each))
                for name, each in vars(value).items()
                if name not in _ASIDE
            ]
        )
    if isinstance(value, list | tuple):
        return tuple([_state(each) for each in value])
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, dict):
        return frozenset((key, _state(each)) for key, each in value.items())
    return value


def free_devices(host_state: HostState) -> Counter[int | None]:
    """Return how many free PCI devices each NUMA node of a host has."""
    found = Counter[int | None]()
    for pool in host_state.pci_stats.pools if host_state.pci_stats else ():
        found[pool.get("numa_node")] += pool["count"]
    return found
