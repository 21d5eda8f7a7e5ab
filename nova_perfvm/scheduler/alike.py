# SPDX-License-Identifier: Apache-2.0
"""Compare the states of hosts, so that equal hosts are judged once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, Final

from nova.objects import base
from nova.scheduler.host_manager import HostState

# Attributes of Nova's objects without effect on verdicts.
_ASIDE: Final = frozenset({"_changed_fields", "_context"})


def state_of(host_state: HostState) -> Hashable:
    """Return a key that is equal for hosts onto which the same NUMA topologies fit.

    Hashing the key raises TypeError if a part of the host's state has no hash.
    """
    return (
        host_state.cpu_allocation_ratio,
        host_state.ram_allocation_ratio,
        _state(host_state.numa_topology),
        # Nova tries NUMA nodes with PCI devices last.  The order matters, as Nova
        # writes into the request's topology on each try.
        frozenset(free_devices(host_state).items()),
    )


def _state(value: Any) -> Hashable:
    """Return a key of everything that a value holds, objects of Nova included."""
    if isinstance(value, base.NovaObject):
        # Reading the attributes costs half as much as reading the fields.
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
