# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

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
