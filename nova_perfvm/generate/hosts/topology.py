# SPDX-License-Identifier: Apache-2.0
"""Which CPUs a host has: its NUMA nodes, their cores, the cores' threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from nova_perfvm import cpuset
from nova_perfvm.generate.hosts.errors import TopologyError
from nova_perfvm.policy import HostShape

# One physical core: the CPU numbers of its threads, in ascending order.
Core = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """One NUMA node.

    :ivar id: the kernel's number of the node
    :ivar cores: in ascending order of their first threads
    :ivar memory_mb: memory of the node in MiB, None if it is not known
    """

    id: int
    cores: tuple[Core, ...]
    memory_mb: int | None = None

    @property
    def cpus(self) -> frozenset[int]:
        """All CPUs of the node, as the kernel counts them (threads)."""
        return frozenset(cpu for core in self.cores for cpu in core)


@dataclass(frozen=True, slots=True)
class Topology:
    """A host's CPUs and memory.

    :ivar nodes: the NUMA nodes that have CPUs, in the kernel's order
    :ivar source: where this was read, for messages
    :ivar numbering: what was taken for granted about which CPU is where; empty where
        the source says it
    """

    nodes: tuple[Node, ...]
    source: str
    numbering: str = ""

    @property
    def cpus(self) -> frozenset[int]:
        """All CPUs of the host."""
        return frozenset(cpu for node in self.nodes for cpu in node.cpus)

    @property
    def memory_mb(self) -> int | None:
        """Memory of all nodes in MiB, None if that of one is not known."""
        known = [n.memory_mb for n in self.nodes if n.memory_mb is not None]
        return sum(known) if len(known) == len(self.nodes) else None

    @property
    def shape(self) -> HostShape | None:
        """The host's shape, None where nodes or cores differ in size."""
        cores = {len(node.cores) for node in self.nodes}
        threads = {len(core) for node in self.nodes for core in node.cores}
        if len(cores) != 1 or len(threads) != 1:
            return None
        return HostShape(len(self.nodes), cores.pop(), threads.pop())

    def __str__(self) -> str:
        """Return the shape, or how many cores each node has."""
        if self.shape is not None:
            return str(self.shape)
        sizes = " + ".join(str(len(node.cores)) for node in self.nodes)
        return f"{len(self.nodes)} NUMA nodes of {sizes} cores"

    def with_memory(self, memory_gb: int) -> Topology:
        """Return the same host with so much memory in GiB, spread evenly."""
        share_mb = memory_gb * 1024 // len(self.nodes)
        nodes = tuple(replace(node, memory_mb=share_mb) for node in self.nodes)
        return replace(self, nodes=nodes)


def make_topology(nodes: Iterable[Node], source: str) -> Topology:
    """Return a topology of the nodes that have CPUs.

    A node of memory alone (CXL, persistent memory) takes no pinned VM.

    :raises TopologyError: when no node has a CPU, or two nodes share one
    """
    kept = tuple(
        replace(node, cores=tuple(sorted(node.cores)))
        for node in sorted(nodes, key=lambda node: node.id)
        if node.cores
    )
    if not kept:
        raise TopologyError(f"{source}: no online CPU is listed")
    listed = Counter(cpu for node in kept for core in node.cores for cpu in core)
    twice = {cpu for cpu, times in listed.items() if times > 1}
    if twice:
        raise TopologyError(
            f"{source}: CPUs {cpuset.format_cpus(twice)} are listed twice"
        )
    return Topology(kept, source)


def nodes_of(
    shape: HostShape, number: Callable[[int, int, int], int]
) -> tuple[Node, ...]:
    """Return the NUMA nodes of a shape.

    :param number: returns the number of a CPU, from those of its node, of its core on
        the node, and of its thread on the core
    """
    return tuple(
        Node(
            node,
            tuple(
                tuple(number(node, core, thread) for thread in range(shape.threads))
                for core in range(shape.cores)
            ),
        )
        for node in range(shape.cells)
    )


def from_shape(shape: HostShape) -> Topology:
    """Return a host of a shape, its CPUs numbered as Linux on x86 does.

    First one thread of each core, node after node, then the second threads:
    node 0 of 2x20x2 has 0-19 and 40-59, and CPU 40 shares a core with CPU 0.

    :raises TopologyError: when the shape has more CPUs than Linux supports
    """
    if shape.cpus > cpuset.MAX_CPU + 1:
        raise TopologyError(
            f"{shape} has {shape.cpus} CPUs: expected at most {cpuset.MAX_CPU + 1}"
        )
    all_cores = shape.cells * shape.cores
    nodes = nodes_of(
        shape,
        lambda node, core, thread: thread * all_cores + node * shape.cores + core,
    )
    listed = "; ".join(f"node {n.id}: {cpuset.format_cpus(n.cpus)}" for n in nodes)
    numbering = (
        f"a shape does not say which CPU is where; taken for granted: {listed}. Many "
        "hosts are numbered otherwise: compare with lscpu -e=CPU,NODE,CORE on the "
        "host, or use --topology FILE"
    )
    return Topology(nodes, str(shape), numbering)
