# SPDX-License-Identifier: Apache-2.0
"""One host's configuration: nova.conf, provider.yaml, kernel arguments, tuned.

Pure: this package neither imports Nova nor reads its configuration.  It refuses
configurations with which nova-compute would not start, and names the remedy.
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
from nova_perfvm.placement.host_schemes import Mode

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
