# SPDX-License-Identifier: Apache-2.0
"""No more VMs of a class are here than it allows, and nobody whom it excludes."""

from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import Check, failed, judged, skipped
from nova_perfvm.measure.checks.host_subject import NO_POLICY, HostSubject, unread
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import domains as observed
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import number_of

_MOVE = "openstack server migrate {}; how it came here: openstack perfvm audit"


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look at the VMs that run, by their classes."""
    if subject.policy is None:
        yield skipped("", NO_POLICY)
        return
    by_class = {
        vm_class: [d for d in subject.domains if subject.class_of(d) == vm_class]
        for vm_class in subject.policy.classes
    }
    source = (
        f"{observed.LIST}; virsh -r dumpxml of {number_of(len(subject.domains), 'VM')}"
    )
    for vm_class, own in by_class.items():
        if not own:
            continue
        if vm_class.max_per_host is not None:
            yield judged(
                f"number, class {vm_class.name}",
                f"at most {vm_class.max_per_host}",
                f"{len(own)}: {_names(own)}",
                source,
                holds=len(own) <= vm_class.max_per_host,
                remedy=_MOVE.format(own[-1].uuid),
            )
        yield from _sizes(vm_class, own)
        others = [domain for domain in subject.domains if domain not in own]
        if vm_class.exclusive == "host":
            yield judged(
                f"nobody beside, class {vm_class.name}",
                "no VM of another class on the host",
                f"{len(others)}: {_names(others)}"
                if others
                else f"{number_of(len(own), 'VM')} alone",
                source,
                holds=not others,
                remedy=_MOVE.format(others[0].uuid) if others else "",
            )
        elif vm_class.exclusive == "cell":
            yield _beside(subject, vm_class, own, others, source)
    yield from _unmanaged(subject)
    yield from unread(subject)


def _unmanaged(subject: HostSubject) -> Iterator[Finding]:
    """Look for QEMU that libvirt does not know: Nova counts none of it."""
    known = {domain.uuid for domain in subject.domains} | subject.unread_domains.keys()
    try:
        found = subject.processes
    except NotReadError:
        return
    for process in found:
        if process.uuid not in known:
            yield failed(
                f"process {process.pid}",
                "each process of QEMU is a domain that libvirt runs",
                f"UUID {process.uuid or 'none'}, which libvirt does not run",
                f"{process.path}/cmdline; {observed.LIST}",
                f"see whose it is (ps -fp {process.pid}), and end it there",
            )


def _names(domains: list[Domain]) -> str:
    return ", ".join(domain.name for domain in domains[:5])


def _sizes(vm_class: VMClass, own: list[Domain]) -> Iterator[Finding]:
    if not vm_class.sizes:
        return
    for domain in own:
        yield judged(
            f"{domain.name}: size",
            f"{' or '.join(map(str, vm_class.sizes))} vCPUs",
            f"{domain.vcpus}",
            domain.source,
            holds=domain.vcpus in vm_class.sizes,
            remedy=f"resize it to a flavor of class {vm_class.name}",
        )


def _beside(
    subject: HostSubject,
    vm_class: VMClass,
    own: list[Domain],
    others: list[Domain],
    source: str,
) -> Finding:
    nodes = frozenset().union(*(subject.nodes_of(d.pinned_cpus) for d in own))
    met = [d for d in others if subject.nodes_of(subject.cpus_of(d)) & nodes]
    return judged(
        f"nobody beside, class {vm_class.name}",
        f"no VM of another class on node {format_cpus(nodes)}",
        f"{len(met)}: {_names(met)}"
        if met
        else f"{number_of(len(own), 'VM')} alone there",
        source,
        holds=not met,
        remedy=_MOVE.format(met[0].uuid) if met else "",
    )


CHECK = Check(
    110, "hypervisor.class_rules", "Classes meet on a host as the policy says", find
)
