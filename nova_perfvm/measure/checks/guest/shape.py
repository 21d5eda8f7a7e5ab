# SPDX-License-Identifier: Apache-2.0
"""The guest has the CPUs and NUMA nodes of its class."""

from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import cpus
from nova_perfvm.policy import VMClass

_NO_CLASS = "nobody said of which class the guest is: name it with --class"
_RESIZE = "openstack server resize --flavor FLAVOR SERVER, to a flavor of class {}"


def find(subject: GuestSubject) -> Iterator[Finding]:
    """Compare the guest with its class; whether nodes have memory needs none."""
    vm_class = subject.vm_class
    for name, look in (
        ("vCPUs", _vcpus),
        ("NUMA nodes", _nodes),
        ("threads of a core", _threads),
    ):
        if vm_class is None:
            yield skipped(name, _NO_CLASS)
            continue
        try:
            yield look(subject, vm_class)
        except NotReadError as exc:
            yield skipped(name, exc.reason, exc.place)
    yield _memory(subject)


def _vcpus(subject: GuestSubject, vm_class: VMClass) -> Finding:
    if not vm_class.sizes:
        reason = f"class {vm_class.name} allows any number"
        return skipped("vCPUs", reason, cause=Cause.ANY_NUMBER)
    remedy = _RESIZE.format(vm_class.name)
    if subject.vcpus < max(vm_class.sizes):
        remedy = (
            f"bring all online (echo 1 > {cpus.CPU}/cpuN/online); if they are, {remedy}"
        )
    return judged(
        "vCPUs",
        " or ".join(map(str, vm_class.sizes)),
        str(subject.vcpus),
        subject.online.source,
        holds=subject.vcpus in vm_class.sizes,
        remedy=remedy,
    )


def _nodes(subject: GuestSubject, vm_class: VMClass) -> Finding:
    if vm_class.numa_nodes is None:
        reason = f"class {vm_class.name} allows any number"
        return skipped("NUMA nodes", reason, cause=Cause.ANY_NUMBER)
    path = f"{cpus.NODE}/online"
    nodes = cpus.some_numbers(subject.collected, path)
    return judged(
        "NUMA nodes",
        str(vm_class.numa_nodes),
        str(len(nodes)),
        path,
        holds=len(nodes) == vm_class.numa_nodes,
        remedy=_RESIZE.format(vm_class.name),
    )


def _threads(subject: GuestSubject, vm_class: VMClass) -> Finding:
    name = "threads of a core"
    if not vm_class.pinned or vm_class.smt != "cores":
        reason = f"class {vm_class.name} promises no whole cores"
        return skipped(name, reason, cause=Cause.NO_WHOLE_CORES)
    threads = cpus.threads_per_core(subject.collected)
    return judged(
        name,
        "1: each vCPU owns a core",
        str(threads),
        f"{cpus.CPU}/cpu*/topology/thread_siblings_list",
        holds=threads == 1,
        # Only what QEMU shows; the pins on the host prove it.
        otherwise=Level.WARNING,
        remedy="look at the pins on the host: nova-perfvm host check",
    )


def _memory(subject: GuestSubject) -> Finding:
    path = f"{cpus.NODE}/has_memory"
    nodes = cpus.some_numbers(subject.collected, f"{cpus.NODE}/online")
    empty = nodes - cpus.numbers(subject.collected, path)
    return judged(
        "memory of NUMA nodes",
        "each node has some",
        f"none on node {format_cpus(empty)}"
        if empty
        else f"each of {len(nodes)} has some",
        path,
        holds=not empty,
        remedy="openstack server resize --flavor FLAVOR SERVER, to a flavor whose "
        "hw:numa_mem.N are none or more than 0",
    )


CHECK = Check(10, "guest.shape", "The guest has the shape of its class", find)
