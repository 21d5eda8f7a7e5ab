# SPDX-License-Identifier: Apache-2.0
"""What a cloud shows at one time, without a cloud: pure, frozen, versioned."""

from nova_perfvm.snapshot.cells import assume_cells
from nova_perfvm.snapshot.cloud import (
    Aggregate,
    Flavor,
    Image,
    Inventory,
    Migration,
    Provider,
    Server,
    ServerCell,
)
from nova_perfvm.snapshot.document import SnapshotError, dumps, loads
from nova_perfvm.snapshot.facts import host_facts, server_facts
from nova_perfvm.snapshot.model import (
    ASSUMED,
    CELL_SOURCES,
    INVENTORY_FILE,
    NOVA_DATABASE,
    SCHEMA_VERSION,
    UNKNOWN,
    ComputeHost,
    HostCell,
    HostPages,
    Snapshot,
)

__all__ = [
    "ASSUMED",
    "CELL_SOURCES",
    "INVENTORY_FILE",
    "NOVA_DATABASE",
    "SCHEMA_VERSION",
    "UNKNOWN",
    "Aggregate",
    "ComputeHost",
    "Flavor",
    "HostCell",
    "HostPages",
    "Image",
    "Inventory",
    "Migration",
    "Provider",
    "Server",
    "ServerCell",
    "Snapshot",
    "SnapshotError",
    "assume_cells",
    "dumps",
    "host_facts",
    "loads",
    "server_facts",
]
