# SPDX-License-Identifier: Apache-2.0
"""One host's configuration: nova.conf, provider.yaml, kernel arguments, tuned.

Pure: reads no configuration of Nova and imports none of it.  What Nova refuses
is refused here, with the remedy, before nova-compute would.
"""

from nova_perfvm.generate.hosts.config import HostConfig
from nova_perfvm.generate.hosts.errors import HostConfigError, TopologyError
from nova_perfvm.generate.hosts.generate import generate
from nova_perfvm.generate.hosts.request import MODES, RESERVED_MEMORY_GB, HostRequest
from nova_perfvm.generate.hosts.topology import (
    Node,
    Topology,
    from_shape,
    make_topology,
)
from nova_perfvm.placement.schemes import Mode

__all__ = [
    "MODES",
    "RESERVED_MEMORY_GB",
    "HostConfig",
    "HostConfigError",
    "HostRequest",
    "Mode",
    "Node",
    "Topology",
    "TopologyError",
    "from_shape",
    "generate",
    "make_topology",
]
