# SPDX-License-Identifier: Apache-2.0
"""The host has the NUMA nodes, cores and memory that the policy is written for."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import NO_POLICY, HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import topology
from nova_perfvm.measure.observed.cpus import NODE
from nova_perfvm.policy import VMClass

# Firmware takes some memory of the first node.
_MOST_UNEVEN = 0.1
_MEMINFO = f"{NODE}/node*/meminfo"


def find(subject: HostSubject) -> Iterator[Finding]:
    """Compare the shape, then the memory of the nodes with each other and with VMs."""
    yield _shape(subject)
    yield _evenness(subject)
    if subject.policy is not None:
        for vm_class in subject.policy.pinned_classes:
            yield _room(subject, vm_class)


def _shape(subject: HostSubject) -> Finding:
    name = "shape"
    if subject.policy is None:
        return skipped(name, NO_POLICY)
    if _powered_down(subject):
        reason = (
            "the node of CPUs that are offline is not known; Nova saves power: collect "
            "while VMs own all dedicated CPUs"
        )
        return skipped(name, reason, topology.SOURCE)
    shapes = subject.policy.host_shapes
    return judged(
        name,
        " or ".join(map(str, shapes)),
        str(subject.topology),
        topology.SOURCE,
        holds=subject.topology.shape in shapes,
        remedy="add the host's shape to host_shape of the policy, and prove by "
        "nova-perfvm policy check that the classes fit it; or bring CPUs online, and "
        "set NUMA nodes per socket and SMT in the firmware as on the other hosts",
    )


def _powered_down(subject: HostSubject) -> bool:
    """Return whether CPUs are missing as Nova saves power, and no more is wrong."""
    try:
        return bool(subject.powered_down)
    except NotReadError:
        return False


def _memory_kb(subject: HostSubject) -> dict[int, int]:
    nodes = [node for node in subject.nodes if node.cpus]
    return {node.number: node.memory_kb for node in nodes if node.memory_kb is not None}


def _evenness(subject: HostSubject) -> Finding:
    name = "memory of the nodes"
    memory = _memory_kb(subject)
    unread = [n.source for n in subject.nodes if n.cpus and n.number not in memory]
    if unread:
        reason = subject.collected.unread.get(unread[0], "it was not collected")
        return skipped(name, reason, unread[0])
    return judged(
        name,
        f"as much on each node, give or take {_MOST_UNEVEN:.0%}",
        ", ".join(f"{kb / 2**20:.1f} GiB on node {n}" for n, kb in memory.items()),
        _MEMINFO,
        holds=min(memory.values()) >= (1 - _MOST_UNEVEN) * max(memory.values()),
        otherwise=Level.WARNING,
        remedy="fill the memory slots of each socket alike: a node with less memory "
        "holds smaller VMs, and one with fewer channels is slower",
    )


def _room(subject: HostSubject, vm_class: VMClass) -> Finding:
    name = f"memory for class {vm_class.name}"
    sizes = vm_class.flavors.sizes if vm_class.flavors else ()
    memory = _memory_kb(subject)
    if not sizes or not memory:
        reason = "its flavors, or the nodes' memory, are not known"
        return skipped(name, reason, cause=Cause.FLAVORS_UNKNOWN)
    most_gb = max(size.memory_gb for size in sizes) / vm_class.cells_per_vm
    least_gb = min(memory.values()) / 2**20
    return judged(
        name,
        f"{most_gb:g} GiB on a node, for its largest flavor",
        f"{least_gb:.1f} GiB on the smallest node",
        _MEMINFO,
        holds=least_gb >= most_gb,
        otherwise=Level.WARNING,
        remedy="leave that flavor to hosts with more memory, or take it out of the "
        "policy: here it finds no room",
    )


CHECK = Check(10, "hypervisor.node_shape", "The host has the policy's shape", find)
