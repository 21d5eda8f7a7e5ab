# SPDX-License-Identifier: Apache-2.0
"""A host configuration that was asked for and cannot be made."""

from __future__ import annotations

from nova_perfvm.exceptions import PerfVMError


class HostConfigError(PerfVMError):
    """A request that contradicts the policy, the host, or Nova; with the remedy."""


class TopologyError(HostConfigError):
    """A description of a host's CPUs that does not say what is needed."""
