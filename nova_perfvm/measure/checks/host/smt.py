# SPDX-License-Identifier: Apache-2.0
"""Threads are not cores: a vCPU that is promised a core has it for itself."""

from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.observed import topology
from nova_perfvm.measure.observed.cpus import CPU
from nova_perfvm.measure.observed.domains import Domain

_SIBLINGS = f"{CPU}/cpu*/topology/thread_siblings_list"


def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Look for cores of which a VM has not all that it uses."""
    vm_class = subject.class_of(domain)
    if vm_class is None:
        reason = "its class is not known, so neither what it owns"
        yield skipped(domain.name, reason, cause=Cause.CLASS_UNKNOWN)
        return
    if vm_class.smt != "cores":
        reason = f"class {vm_class.name} promises threads only"
        yield skipped(domain.name, reason, cause=Cause.NO_WHOLE_CORES)
        return
    own = domain.pins
    if not own:
        yield skipped(domain.name, "none of its vCPUs has a CPU", domain.source)
        return
    others = subject.cpu_sets.shared.union(
        *(other.pinned_cpus for other in subject.pinned if other != domain)
    )
    cores = topology.cores(subject.collected, frozenset(own.values()))
    twice = [c for c in cores if sum(cpu in c for cpu in own.values()) > 1]
    foreign = [core for core in cores if others.intersection(core)]
    bad = sorted({*twice, *foreign})
    listed = "; ".join(format_cpus(core) for core in bad)
    why = "two vCPUs of it" if twice else "others' vCPUs"
    yield judged(
        domain.name,
        f"{domain.vcpus} vCPUs on {domain.vcpus} cores that nobody else uses",
        f"on {len(cores)} cores"
        + (f", {len(bad)} of them shared by {why}: CPUs {listed}" if bad else ""),
        f"{domain.source}; {_SIBLINGS}",
        holds=not bad,
        remedy="take one thread of each core into [compute]cpu_dedicated_set, and none "
        "into cpu_shared_set (nova-perfvm host config), then create the server anew "
        "there; or declare smt: threads, if half a core is what is promised",
    )


CHECK = Check(
    20, "hypervisor.smt", "A vCPU that is promised a core has it alone", of_pinned(look)
)
