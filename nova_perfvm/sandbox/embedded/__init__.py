# SPDX-License-Identifier: Apache-2.0
"""A real Nova and a real Placement in this process, on pretended hosts.

Nova's API, conductor, scheduler and computes run as threads; the computes use
the real libvirt driver over the libvirt that Nova's own functional tests
pretend. Glance, Cinder, Neutron and Keystone are those tests' fixtures.
"""

# First, before anything of Nova is imported: it chooses the threading mode.
from nova_perfvm.sandbox.embedded import bootstrap  # noqa: F401
from nova_perfvm.sandbox.embedded.cloud import (
    DEFAULT_FILTERS,
    EmbeddedCloud,
    ServiceExitError,
)
from nova_perfvm.sandbox.embedded.guest import EmbeddedGuest
from nova_perfvm.sandbox.embedded.servers import BootedServer

__all__ = [
    "DEFAULT_FILTERS",
    "BootedServer",
    "EmbeddedCloud",
    "EmbeddedGuest",
    "ServiceExitError",
]
