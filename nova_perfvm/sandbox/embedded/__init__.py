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

"""A real Nova and a real Placement in this process, on pretended hosts.

Nova's API, conductor, scheduler and computes run as threads; the computes use
the real libvirt driver over the libvirt that Nova's own functional tests
pretend. Glance, Cinder, Neutron and Keystone are those tests' fixtures.
"""

# First, before anything of Nova is imported: it chooses the threading mode.
from nova_perfvm.sandbox.embedded import bootstrap  # noqa: F401
from nova_perfvm.sandbox.embedded.cloud import (
    DEFAULT_FILTERS,
    DEFAULT_WEIGHERS,
    FILTERS_WITHOUT_PERFVM,
    NOVA_WEIGHERS,
    EmbeddedCloud,
    ServiceExitError,
)
from nova_perfvm.sandbox.embedded.decisions import Verdict
from nova_perfvm.sandbox.embedded.guest import Guest
from nova_perfvm.sandbox.embedded.hosts import HostSettings
from nova_perfvm.sandbox.embedded.servers import Server

__all__ = [
    "DEFAULT_FILTERS",
    "DEFAULT_WEIGHERS",
    "FILTERS_WITHOUT_PERFVM",
    "NOVA_WEIGHERS",
    "EmbeddedCloud",
    "Guest",
    "HostSettings",
    "Server",
    "ServiceExitError",
    "Verdict",
]
