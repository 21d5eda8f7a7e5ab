# SPDX-License-Identifier: Apache-2.0
"""The topology of hosts that Nova's fake libvirt reports."""

from __future__ import annotations

from nova_perfvm.generate.hosts import Topology, make_topology
from nova_perfvm.generate.hosts.topology import nodes_of
from nova_perfvm.policy import HostShape


def pretended_topology(shape: HostShape, memory_gb: int) -> Topology:
    """Return the topology that Nova's fake libvirt reports for a shape.

    The fake's SMT siblings have neighbouring numbers: CPUs 0 and 1 share a core, unlike
    on x86 (:func:`nova_perfvm.generate.hosts.from_shape`).
    """
    nodes = nodes_of(
        shape,
        lambda node, core, thread: (node * shape.cores + core) * shape.threads + thread,
    )
    return make_topology(nodes, f"pretended {shape}").with_memory(memory_gb)
