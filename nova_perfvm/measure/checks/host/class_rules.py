# SPDX-License-Identifier: Apache-2.0
"""The host's VMs keep the sizes, number per host and exclusivity of their classes."""

from collections.abc import Sequence
from contextlib import suppress

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Seen, check_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.domains import LIST, Domain
from nova_perfvm.policy import VMClass


@check_of(
    110,
    "hypervisor.class_rules",
    source=f"{LIST}; virsh -r dumpxml of the VMs that run; /proc/*/cmdline of QEMU",
    remedy="openstack server migrate UUID, or resize it to a flavor of its class; how "
    "it came here: openstack perfvm audit; whose a process is: ps -fp PID",
)
def class_rules(host: HostSubject) -> Seen:
    """VMs keep the sizes, number per host and exclusivity of their class."""
    for vm_class in host.needed_policy.classes:
        own = [domain for domain in host.domains if host.class_of(domain) == vm_class]
        if own:
            yield from _of_class(host, vm_class, own)
    known = {domain.uuid for domain in host.domains} | host.unread_domains.keys()
    with suppress(NotReadError):
        for process in host.processes:
            if process.uuid not in known:
                # Nova does not account for its CPUs and memory.
                yield Level.FAILURE, f"process {process.pid}, unknown to libvirt, runs"
    yield from host.unread_domains.values()


def _of_class(host: HostSubject, vm_class: VMClass, own: Sequence[Domain]) -> Seen:
    number = f"{len(own)} of class {vm_class.name}"
    yield Level.OK, number
    if vm_class.max_per_host is not None and len(own) > vm_class.max_per_host:
        yield Level.FAILURE, f"{number}, at most {vm_class.max_per_host}: {_names(own)}"
    wrong = [one for one in own if vm_class.sizes and one.vcpus not in vm_class.sizes]
    if wrong:
        sizes = " or ".join(map(str, vm_class.sizes))
        shown = f"of another size than the {sizes} vCPUs of class {vm_class.name}"
        yield Level.FAILURE, f"{shown}: {_names(wrong)}"
    others, where = [d for d in host.domains if d not in own], "the host"
    if vm_class.exclusive == "cell":
        nodes = host.nodes_of(frozenset().union(*(d.pinned_cpus for d in own)))
        others = [d for d in others if host.nodes_of(host.cpus_of(d)) & nodes]
        where = f"node {format_cpus(nodes)}"
    if others and vm_class.exclusive in {"host", "cell"}:
        shown = f"beside class {vm_class.name} on {where}"
        yield Level.FAILURE, f"{shown}: {_names(others)}"


def _names(domains: Sequence[Domain]) -> str:
    return ", ".join(f"{one.name} ({one.uuid})" for one in domains[:5])
