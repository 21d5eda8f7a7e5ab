# SPDX-License-Identifier: Apache-2.0
"""The cgroups of a VM let it use its own CPUs and its own node's memory.

A cpuset overrules what a thread was bound to; one that lacks a vCPU's CPU moves it.
"""

from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import processes
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import CPUSet, Process, Role
from nova_perfvm.printable import number_of


def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Look at the cgroups of a VM's vCPUs; where libvirt makes none, at QEMU's."""
    process = subject.process_of(domain)
    groups = dict(_groups(subject, process))
    lacking = {
        vcpu: groups.get(vcpu, groups[None])
        for vcpu, cpus in domain.vcpupins.items()
        if not cpus <= groups.get(vcpu, groups[None]).cpus
    }
    seen = sorted({group.source for group in groups.values()})
    source = seen[0] if len(seen) == 1 else f"{seen[0]} and {len(seen) - 1} more"
    remedy = (
        "find who set it (systemctl show -p AllowedCPUs -p AllowedMemoryNodes of the "
        "unit and its slice, or an agent), take that away, then "
        f"openstack server reboot --hard {domain.uuid}"
    )
    yield judged(
        f"{domain.name}: CPUs",
        "the CPUs of its vCPUs are in their cpuset",
        "; ".join(
            f"vCPU {vcpu} has CPU {format_cpus(domain.vcpupins[vcpu])}, the cpuset "
            f"{format_cpus(group.cpus)}"
            for vcpu, group in list(lacking.items())[:3]
        )
        or f"{len(domain.vcpupins)} vCPUs in {number_of(len(seen), 'cgroup')}",
        source,
        holds=not lacking and bool(domain.vcpupins),
        remedy=remedy,
    )
    nodes = subject.nodes_of(domain.pinned_cpus)
    mems = [group.mems for group in groups.values()]
    lacks = any(not nodes <= found for found in mems)
    every = frozenset().union(*mems)
    yield judged(
        f"{domain.name}: memory",
        f"memory of node {format_cpus(nodes)} only",
        f"nodes {format_cpus(every) or 'none'}",
        source,
        holds=not lacks and every == nodes,
        # What QEMU has bound itself stays bound; the rest may come from elsewhere.
        otherwise=Level.FAILURE if lacks else Level.WARNING,
        remedy=remedy,
    )


def _groups(
    subject: HostSubject, process: Process
) -> Iterator[tuple[int | None, CPUSet]]:
    """Yield the cpusets of vCPUs; of the process under None."""
    yield None, processes.cpu_set(subject.collected, process.path)
    for task in process.of(Role.VCPU):
        try:
            group = processes.cpu_set(subject.collected, task.path)
        except NotReadError:
            # A task that is in its process's cgroup.
            continue
        yield task.number, group


CHECK = Check(
    55, "hypervisor.cpuset_cgroup", "Cgroups let a VM have its CPUs", of_pinned(look)
)
