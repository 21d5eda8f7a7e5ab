# SPDX-License-Identifier: Apache-2.0
"""A real Nova and a real Placement in this process, on pretended hosts.

Nova's API, conductor, scheduler and computes run as threads; the computes use
the real libvirt driver over the libvirt that Nova's own functional tests
pretend. Glance, Cinder, Neutron and Keystone are those tests' fixtures.
"""

# First, before anything of Nova is imported: it chooses the threading mode.
from tests.cloud import bootstrap  # noqa: F401
from tests.cloud.cloud import DEFAULT_FILTERS, EmbeddedCloud, ServiceExitError
from tests.cloud.guest import EmbeddedGuest
from tests.cloud.servers import BootedServer

__all__ = [
    "DEFAULT_FILTERS",
    "BootedServer",
    "EmbeddedCloud",
    "EmbeddedGuest",
    "ServiceExitError",
]
