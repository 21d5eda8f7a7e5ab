# SPDX-License-Identifier: Apache-2.0
"""A host's topology: NUMA nodes, their cores, and the cores' threads."""

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
    :ivar memory_mb: memory of the node in MiB, None if unknown
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
    :ivar source: name of the topology's source, for messages
    :ivar numbering: the assumption about the numbers of CPUs, in words; empty where
        the source has the numbers
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
        """Memory of all nodes in MiB; None if a node's memory is unknown."""
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
        """Return the shape, or the number of cores of each node."""
        if self.shape is not None:
            return str(self.shape)
        sizes = " + ".join(str(len(node.cores)) for node in self.nodes)
        return f"{len(self.nodes)} NUMA nodes of {sizes} cores"

    @property
    def unevenness(self) -> str:
        """How nodes or cores differ in size, in words; empty for an even host."""
        found = []
        most = max(len(node.cores) for node in self.nodes)
        for node in self.nodes:
            if len(node.cores) < most:
                less = f"node {node.id} has {len(node.cores)} cores, others {most}"
                found.append(f"{less} (CPUs offline?)")
            threads = sorted({len(core) for core in node.cores})
            if len(threads) > 1:
                kinds = " and ".join(map(str, threads))
                found.append(
                    f"node {node.id} has cores of {kinds} threads (threads offline, or "
                    "fast and efficient cores, which make a VM's vCPUs unequal?)"
                )
        return "; ".join(found)

    def with_memory(self, memory_gb: int) -> Topology:
        """Return the same host with `memory_gb` GiB, spread evenly over its nodes."""
        share_mb = memory_gb * 1024 // len(self.nodes)
        nodes = tuple(replace(node, memory_mb=share_mb) for node in self.nodes)
        return replace(self, nodes=nodes)


def make_topology(nodes: Iterable[Node], source: str) -> Topology:
    """Return a topology of the nodes that have CPUs.

    Nodes without CPUs (CXL, persistent memory) take no pinned VM, and are left out.

    :raises TopologyError: when no node has a CPU, or a CPU is listed twice
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

    :param number: returns a CPU's number from its node, its core on the node, and its
        thread on the core
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
    """Return a host of a shape, with CPUs numbered as Linux does on x86.

    Linux numbers the first threads of all cores, node after node, then the second
    threads: node 0 of 2x20x2 has CPUs 0-19 and 40-59, and CPUs 0 and 40 share a core.

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
        f"a shape has no CPU numbers; assumed: {listed}. Many hosts are numbered in "
        "another way: compare with lscpu -e=CPU,NODE,CORE on the host, or use "
        "--topology FILE"
    )
    return Topology(nodes, str(shape), numbering)
