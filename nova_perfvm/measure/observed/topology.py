# SPDX-License-Identifier: Apache-2.0
"""The NUMA nodes of a host, with their cores and memory."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final, NamedTuple

from nova_perfvm.generate.hosts import Node, Topology, TopologyError, make_topology
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed import cpus
from nova_perfvm.measure.observed.cpus import CPU, NODE

SOURCE: Final = f"{NODE}/node*/cpulist, {CPU}/cpu*/topology/thread_siblings_list"
_CPULIST: Final = re.compile(rf"{NODE}/node(\d+)/cpulist")
_TOTAL: Final = re.compile(r"MemTotal:\s*(\d+) kB")


class NUMANode(NamedTuple):
    """One NUMA node.

    :ivar cpus: the online CPUs; empty on a node with memory only
    """

    number: int
    cpus: frozenset[int]

    @property
    def name(self) -> str:
        """The name for users, such as ``node 0``."""
        return f"node {self.number}"

    @property
    def source(self) -> str:
        """The file with the node's memory size."""
        return f"{NODE}/node{self.number}/meminfo"

    def memory_kb(self, collected: Collected) -> int:
        """Return the node's memory in KiB.

        :raises NotReadError: when the node's meminfo was not read
        """
        match = _TOTAL.search(collected.text(self.source))
        if match is None:
            raise NotReadError(self.source, "it has no MemTotal")
        return int(match[1])


def nodes(collected: Collected) -> tuple[NUMANode, ...]:
    """Return the NUMA nodes, in the order of their numbers.

    :raises NotReadError: when no node's cpulist was read
    """
    matches = map(_CPULIST.fullmatch, collected.files)
    numbers = sorted(int(match[1]) for match in matches if match)
    if not numbers:
        # Raises with the reason if sysfs was unreadable.
        cpus.some_numbers(collected, f"{NODE}/online")
        raise NotReadError(f"{NODE}/node*/cpulist", "it was not collected")
    online = cpus.online(collected)
    listed = {n: cpus.numbers(collected, f"{NODE}/node{n}/cpulist") for n in numbers}
    return tuple(NUMANode(number, found & online) for number, found in listed.items())


def cores(collected: Collected, wanted: frozenset[int]) -> frozenset[tuple[int, ...]]:
    """Return the cores of the given CPUs, each as its sorted thread numbers.

    :raises NotReadError: when a CPU's thread_siblings_list was not read
    """
    path = f"{CPU}/cpu{{}}/topology/thread_siblings_list"
    siblings = {cpu: cpus.some_numbers(collected, path.format(cpu)) for cpu in wanted}
    return frozenset(tuple(sorted({cpu, *core})) for cpu, core in siblings.items())


def read(collected: Collected) -> Topology:
    """Return NUMA nodes, cores and threads of the online CPUs.

    :raises NotReadError: when sysfs was not read, or its files contradict each other
    """
    online = cpus.online(collected)
    found = []
    for node in nodes(collected):
        threads = {
            tuple(cpu for cpu in core if cpu in online)
            for core in cores(collected, node.cpus)
        }
        memory_mb = None
        with suppress(NotReadError):
            memory_mb = node.memory_kb(collected) // 1024
        found.append(Node(node.number, tuple(sorted(threads)), memory_mb))
    try:
        return make_topology(found, collected.hostname)
    except TopologyError as exc:
        raise NotReadError(SOURCE, str(exc)) from exc
