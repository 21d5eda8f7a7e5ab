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
"""A host configuration that was asked for and cannot be made."""

from __future__ import annotations

from nova_perfvm.exceptions import PerfVMError


class HostConfigError(PerfVMError):
    """Wishes that contradict the policy, the host, or Nova; with the remedy."""


class TopologyError(HostConfigError):
    """A description of a host's CPUs that does not say what is needed."""
