# SPDX-License-Identifier: Apache-2.0
"""How the libvirt that the sandboxes pretend numbers the CPUs of a host."""

from __future__ import annotations

import itertools

from nova_perfvm.generate.hosts import Node, Topology, make_topology
from nova_perfvm.policy import HostShape


def pretended_topology(shape: HostShape, memory_gb: int) -> Topology:
    """Return the topology that Nova's fake libvirt reports for a shape.

    Its SMT siblings are neighbours, CPUs 0 and 1 share a core; Linux on x86
    numbers otherwise, see :func:`nova_perfvm.generate.hosts.from_shape`.
    """
    numbers = itertools.count()
    nodes = [
        Node(
            node,
            tuple(
                tuple(next(numbers) for _ in range(shape.threads))
                for _ in range(shape.cores)
            ),
        )
        for node in range(shape.cells)
    ]
    return make_topology(nodes, f"pretended {shape}").with_memory(memory_gb)
