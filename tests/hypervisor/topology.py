# SPDX-License-Identifier: Apache-2.0
"""How the libvirt that the sandboxes pretend numbers the CPUs of a host."""

from __future__ import annotations

from nova_perfvm.generate.hosts import Topology, make_topology
from nova_perfvm.generate.hosts.topology import nodes_of
from nova_perfvm.policy import HostShape


def pretended_topology(shape: HostShape, memory_gb: int) -> Topology:
    """Return the topology that Nova's fake libvirt reports for a shape.

    Its SMT siblings are neighbours, CPUs 0 and 1 share a core; Linux on x86
    numbers otherwise, see :func:`nova_perfvm.generate.hosts.from_shape`.
    """
    nodes = nodes_of(
        shape,
        lambda node, core, thread: (node * shape.cores + core) * shape.threads + thread,
    )
    return make_topology(nodes, f"pretended {shape}").with_memory(memory_gb)
