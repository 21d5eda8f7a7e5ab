# SPDX-License-Identifier: Apache-2.0
"""The NUMA nodes of a host, with their cores and memory.

jc's parser of meminfo is not used: each line of a node begins with ``Node 0``, which
is all that it finds there.
"""

from __future__ import annotations

import re
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

    :ivar cpus: those that run; none on a node of memory alone
    :ivar memory_kb: None if that was not read
    :ivar source: the file that told the memory
    """

    number: int
    cpus: frozenset[int]
    memory_kb: int | None
    source: str


def nodes(collected: Collected) -> tuple[NUMANode, ...]:
    """Return the NUMA nodes, in the order of their numbers.

    :raises NotReadError: when they were not read
    """
    matches = map(_CPULIST.fullmatch, collected.files)
    numbers = sorted(int(match[1]) for match in matches if match)
    if not numbers:
        # Says why not.
        cpus.some_numbers(collected, f"{NODE}/online")
        raise NotReadError(f"{NODE}/node*/cpulist", "it was not collected")
    online = cpus.online(collected).numbers
    return tuple(_node(collected, number, online) for number in numbers)


def _node(collected: Collected, number: int, online: frozenset[int]) -> NUMANode:
    base = f"{NODE}/node{number}"
    match = _TOTAL.search(collected.files.get(f"{base}/meminfo", ""))
    return NUMANode(
        number,
        cpus.numbers(collected, f"{base}/cpulist") & online,
        int(match[1]) if match else None,
        f"{base}/meminfo",
    )


def cores(collected: Collected, wanted: frozenset[int]) -> frozenset[tuple[int, ...]]:
    """Return the cores that CPUs are of: the numbers of their threads.

    :raises NotReadError: when that was not read of one of them
    """
    return frozenset(
        tuple(
            sorted(
                cpus.some_numbers(
                    collected, f"{CPU}/cpu{cpu}/topology/thread_siblings_list"
                )
                | {cpu}
            )
        )
        for cpu in wanted
    )


def read(collected: Collected) -> Topology:
    """Return NUMA nodes, cores and threads of the CPUs that run.

    :raises NotReadError: when they were not read, or contradict each other
    """
    online = cpus.online(collected).numbers
    found = []
    for node in nodes(collected):
        threads = {
            tuple(cpu for cpu in core if cpu in online)
            for core in cores(collected, node.cpus)
        }
        memory_mb = None if node.memory_kb is None else node.memory_kb // 1024
        found.append(Node(node.number, tuple(sorted(threads)), memory_mb))
    try:
        return make_topology(found, collected.hostname)
    except TopologyError as exc:
        raise NotReadError(SOURCE, str(exc)) from exc
