# SPDX-License-Identifier: Apache-2.0
"""Errors of requests for a host configuration."""

from __future__ import annotations

from nova_perfvm.exceptions import PerfVMError


class HostConfigError(PerfVMError):
    """A request that contradicts the policy, the host, or Nova; names the remedy."""


class TopologyError(HostConfigError):
    """A description of a host's CPUs that is invalid or incomplete."""
