# SPDX-License-Identifier: Apache-2.0
"""Each vCPU has a CPU of its own, and all of a VM's NUMA node are on one node."""

from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.check import Check, judged
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.observed.cpus import NODE
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.printable import number_of

_REBOOT = "openstack server reboot --hard {}, which writes its XML anew"
_MOVE = "openstack server migrate {}, and confirm: it gets other CPUs"


def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Look at the pins of a VM."""
    yield _single(domain)
    yield _within(subject, domain)
    yield _disjoint(subject, domain)


def _single(domain: Domain) -> Finding:
    loose = frozenset(range(domain.vcpus)) - domain.pins.keys()
    return judged(
        f"{domain.name}: one CPU each",
        f"each of {domain.vcpus} vCPUs has exactly one CPU",
        f"vCPUs {format_cpus(loose)} have not"
        if loose
        else f"CPUs {format_cpus(domain.pinned_cpus)}",
        domain.source,
        holds=domain.all_pinned,
        remedy=f"{_REBOOT.format(domain.uuid)}; if they stay so, its flavor lacks "
        "hw:cpu_policy=dedicated: resize it",
    )


def _within(subject: HostSubject, domain: Domain) -> Finding:
    """Look at the nodes of each of the VM's NUMA nodes; one it is if it shows none."""
    cells = domain.cells or {0: frozenset(range(domain.vcpus))}
    found = {
        cell: subject.nodes_of(
            frozenset().union(*(domain.vcpupins.get(v, frozenset()) for v in vcpus))
        )
        for cell, vcpus in cells.items()
    }
    vm_class = subject.class_of(domain)
    wanted = len(cells) if vm_class is None else vm_class.cells_per_vm
    nodes = frozenset().union(*found.values())
    listed = ", ".join(format_cpus(on) or "none" for on in found.values())
    return judged(
        f"{domain.name}: NUMA nodes",
        f"on {number_of(wanted, 'NUMA node')} of the host",
        f"on nodes {listed}",
        f"{domain.source}; {NODE}/node*/cpulist",
        holds=all(len(on) == 1 for on in found.values()) and len(nodes) == wanted,
        remedy=f"its flavor must have hw:numa_nodes={wanted}; then "
        f"{_MOVE.format(domain.uuid)}",
    )


def _disjoint(subject: HostSubject, domain: Domain) -> Finding:
    met = {
        other.name: common
        for other in subject.domains
        if other.uuid != domain.uuid
        and (common := domain.pinned_cpus & subject.cpus_of(other))
    }
    own = len(set(domain.pins.values()))
    doubled = own < len(domain.pins)
    shown = "; ".join(f"{format_cpus(cpus)} with {name}" for name, cpus in met.items())
    if doubled:
        shown = f"{len(domain.pins)} vCPUs on {own} CPUs" + (shown and f"; {shown}")
    return judged(
        f"{domain.name}: nobody else",
        "no other vCPU on its CPUs",
        f"shares CPUs {shown}" if shown else f"{own} CPUs of its own",
        f"virsh -r dumpxml of {number_of(len(subject.domains), 'VM')} that run",
        holds=bool(own) and not shown,
        remedy=f"{_MOVE.format(domain.uuid)}; then find how it came there: openstack "
        "perfvm audit",
    )


CHECK = Check(
    30, "hypervisor.vcpu_pins", "Each vCPU has a CPU of its own, near", of_pinned(look)
)
