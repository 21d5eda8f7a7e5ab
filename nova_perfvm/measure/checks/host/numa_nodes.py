# SPDX-License-Identifier: Apache-2.0
"""NUMA nodes have the policy's shape, and enough memory, evenly."""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Cause, Seen, check_each, check_of, each_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import cpus, topology
from nova_perfvm.measure.observed.cpus import NODE
from nova_perfvm.measure.observed.topology import NUMANode
from nova_perfvm.policy.shapes import HostShape

_EFFICIENT = "/sys/devices/cpu_atom*/cpus"
# Firmware takes some memory of the first node.
_MOST_UNEVEN = 0.1


@check_of(
    10,
    "hypervisor.node_shape",
    source=f"{topology.SOURCE}, {NODE}/node*/meminfo",
    remedy="add the host's shape to host_shape of the policy, and prove by "
    "nova-perfvm policy check that the classes fit it; or bring CPUs online, set "
    "NUMA nodes per socket and SMT in the firmware, and fill memory slots, as on "
    "the other hosts",
)
def node_shape(host: HostSubject) -> Seen:
    """Nodes have the policy's shape, as much memory as each other, and enough."""
    yield from each_of((_shape, _memory, _kinds), host)


def _shape(host: HostSubject) -> Seen:
    shapes, asleep = host.needed_policy.host_shapes, frozenset[int]()
    with suppress(NotReadError):
        asleep = host.powered_down
    if asleep:
        reason = (
            "the node of CPUs that are offline is not known; Nova saves power: collect "
            "while VMs own all dedicated CPUs"
        )
        raise NotReadError(topology.SOURCE, reason)
    wanted = " or ".join(map(str, shapes))
    shown = f"{host.topology}, expected {wanted}"
    if host.topology.shape in shapes:
        yield Level.OK, shown
    elif offline := _offline_nodes(host, shapes):
        yield Level.WARNING, f"{shown} with its {offline} CPUs that are offline"
    else:
        off = format_cpus(host.offline)
        yield Level.FAILURE, f"{shown}; CPUs {off} are offline" if off else shown


def _kinds(host: HostSubject) -> Seen:
    """Warn of NUMA nodes that mix performance and efficient cores."""
    paths = host.collected.matching(_EFFICIENT)
    slow = frozenset().union(*(cpus.numbers(host.collected, path) for path in paths))
    for node in host.nodes:
        both = node.cpus & slow
        if both and both != node.cpus:
            shown = f"CPUs {format_cpus(both)} of {node.name} are efficient cores"
            yield Level.WARNING, f"{shown}, its other CPUs performance cores"


def _offline_nodes(host: HostSubject, shapes: Collection[HostShape]) -> int:
    """Return the number of offline CPUs if the host has a shape with them; else 0.

    Only whole NUMA nodes count: Nova takes idle CPUs offline with
    ``[libvirt]cpu_power_management``.
    """
    seen, offline = host.topology.shape, len(host.offline)
    if seen is None:
        return 0
    of_node = seen.cores * seen.threads
    whole = replace(seen, cells=seen.cells + offline // of_node)
    return offline if whole in shapes and offline % of_node == 0 else 0


def _memory(host: HostSubject) -> Seen:
    """Warn of uneven memory, and of too little for a class's largest flavor."""
    nodes = [node for node in host.nodes if node.cpus]
    memory_gb = {node.name: node.memory_kb(host.collected) / 2**20 for node in nodes}
    if not nodes:
        raise NotReadError(topology.SOURCE, "no node has CPUs")
    least_gb = min(memory_gb.values())
    even = least_gb >= (1 - _MOST_UNEVEN) * max(memory_gb.values())
    listed = ", ".join(f"{gb:.1f} GiB on {name}" for name, gb in memory_gb.items())
    yield Level.OK if even else Level.WARNING, listed
    for vm_class in host.policy.pinned_classes if host.policy else ():
        sizes = vm_class.flavors.sizes if vm_class.flavors else ()
        if not sizes:
            reason = f"the sizes of flavors of class {vm_class.name} are not known"
            yield Cause.FACTS_MISSING, reason
            continue
        most_gb = max(size.memory_gb for size in sizes) / vm_class.cells_per_vm
        if least_gb < most_gb:
            shown = f"{most_gb:g} GiB of a node for the largest flavor of class"
            yield Level.WARNING, f"{shown} {vm_class.name}: {listed}"


@check_each(
    15,
    "hypervisor.memoryless_nodes",
    lambda host: host.nodes,
    source=f"{NODE}/node*/meminfo",
    remedy="fit memory to that socket, or switch off memory interleaving in the "
    "firmware; until then keep its CPUs out of cpu_dedicated_set",
)
def memoryless_nodes(host: HostSubject, node: NUMANode) -> Seen:
    """Each NUMA node with CPUs has memory."""
    if not node.cpus:
        yield Cause.NOTHING_TO_JUDGE, "a node without CPUs: no VM is pinned here"
        return
    memory_kb = node.memory_kb(host.collected)
    yield Level.OK if memory_kb else Level.FAILURE, f"{memory_kb / 2**20:.1f} GiB"
