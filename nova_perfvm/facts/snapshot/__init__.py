# SPDX-License-Identifier: Apache-2.0
"""The snapshot of a cloud at one time, as frozen values and as a file."""

from nova_perfvm.facts.snapshot.cells import assume_cells
from nova_perfvm.facts.snapshot.document import dumps, load, loads
from nova_perfvm.facts.snapshot.groups import ServerGroup
from nova_perfvm.facts.snapshot.model import (
    ASSUMED,
    COLLECTED,
    DISABLED_REASON,
    INVENTORY_FILE,
    NOVA_DATABASE,
    UNKNOWN,
    ComputeHost,
    HostCell,
    RootVolume,
    Snapshot,
)
from nova_perfvm.facts.snapshot.reader import host_facts
from nova_perfvm.facts.snapshot.resources import (
    CREATED,
    OFFLOADED,
    Aggregate,
    Flavor,
    Image,
    Inventory,
    Migration,
    Provider,
    Server,
    ServerCell,
    isolating,
    time_of,
)

__all__ = [
    "ASSUMED",
    "COLLECTED",
    "CREATED",
    "DISABLED_REASON",
    "INVENTORY_FILE",
    "NOVA_DATABASE",
    "OFFLOADED",
    "UNKNOWN",
    "Aggregate",
    "ComputeHost",
    "Flavor",
    "HostCell",
    "Image",
    "Inventory",
    "Migration",
    "Provider",
    "RootVolume",
    "Server",
    "ServerCell",
    "ServerGroup",
    "Snapshot",
    "assume_cells",
    "dumps",
    "host_facts",
    "isolating",
    "load",
    "loads",
    "time_of",
]
