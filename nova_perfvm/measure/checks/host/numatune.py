# SPDX-License-Identifier: Apache-2.0
"""A pinned VM's memory may come from the NUMA node of its CPUs only."""

from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import Check, judged
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.observed.cpus import NODE
from nova_perfvm.measure.observed.domains import Binding, Domain


def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Look at what binds the memory of a VM, and of each of its NUMA nodes."""
    yield _judged(
        subject, domain, f"{domain.name}: memory", domain.memory, domain.pinned_cpus
    )
    for cell, vcpus in domain.cells.items():
        cpus: frozenset[int] = frozenset().union(
            *(domain.vcpupins.get(vcpu, frozenset()) for vcpu in vcpus)
        )
        # Without a binding of its own a node has that of the whole memory.
        binding = domain.memnodes.get(cell, domain.memory)
        name = f"{domain.name}: memory of its node {cell}"
        yield _judged(subject, domain, name, binding, cpus)


def _judged(
    subject: HostSubject,
    domain: Domain,
    name: str,
    binding: Binding | None,
    cpus: frozenset[int],
) -> Finding:
    nodes = subject.nodes_of(cpus)
    return judged(
        name,
        f"strict, from node {format_cpus(nodes) or 'of its pins'}",
        f"{binding.mode}, from node {format_cpus(binding.nodes) or 'that is not named'}"
        if binding
        else "bound nowhere",
        f"{domain.source}; {NODE}/node*/cpulist",
        holds=binding is not None
        and binding.mode == "strict"
        and bool(nodes)
        and binding.nodes == nodes,
        remedy=f"openstack server reboot --hard {domain.uuid}; if it stays so, its "
        "flavor lacks hw:cpu_policy=dedicated or hw:numa_nodes: resize it",
    )


CHECK = Check(
    35,
    "hypervisor.numatune",
    "Memory of a pinned VM is bound to its node",
    of_pinned(look),
)
