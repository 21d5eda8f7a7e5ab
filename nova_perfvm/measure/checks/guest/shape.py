# SPDX-License-Identifier: Apache-2.0
"""The guest has the CPUs and NUMA nodes of its class."""

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Cause, Seen, check_of, each_of
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import cpus
from nova_perfvm.policy import VMClass

_NO_CLASS = "the guest's class is unknown: name it with --class"


@check_of(
    10,
    "guest.shape",
    source=f"{cpus.CPU}/online and cpu*/topology/thread_siblings_list, {cpus.NODE}",
    remedy="openstack server resize --flavor FLAVOR SERVER, to a flavor of its class "
    f"without hw:numa_mem.N of 0; echo 1 > {cpus.CPU}/cpuN/online, if CPUs are "
    "offline; of threads nova-perfvm host check, on its host, says more",
)
def shape(guest: GuestSubject) -> Seen:
    """Guests have the vCPUs, NUMA nodes and cores of their class, with memory."""
    if guest.vm_class is None:
        yield NotReadError("--class", _NO_CLASS)
    else:
        yield from each_of((_vcpus, _nodes, _threads), guest, guest.vm_class)
    nodes = cpus.some_numbers(guest.collected, f"{cpus.NODE}/online")
    if empty := nodes - cpus.numbers(guest.collected, f"{cpus.NODE}/has_memory"):
        yield Level.FAILURE, f"NUMA nodes {format_cpus(empty)} have no memory"


def _vcpus(guest: GuestSubject, vm_class: VMClass) -> Seen:
    if not vm_class.sizes:
        yield Cause.NOTHING_TO_JUDGE, "the class sets no number of vCPUs"
        return
    wanted = " or ".join(map(str, vm_class.sizes))
    holds = guest.vcpus in vm_class.sizes
    yield Level.OK if holds else Level.FAILURE, f"{guest.vcpus} of {wanted} vCPUs"


def _nodes(guest: GuestSubject, vm_class: VMClass) -> Seen:
    wanted = vm_class.numa_nodes
    if wanted is None:
        yield Cause.NOTHING_TO_JUDGE, "the class sets no number of nodes"
        return
    found = len(cpus.some_numbers(guest.collected, f"{cpus.NODE}/online"))
    yield Level.OK if found == wanted else Level.FAILURE, f"{found} of {wanted} nodes"


def _threads(guest: GuestSubject, vm_class: VMClass) -> Seen:
    if not vm_class.pinned or vm_class.smt != "cores":
        yield Cause.NOTHING_TO_JUDGE, "its class promises no whole cores"
        return
    threads = cpus.threads_per_core(guest.collected)
    # The guest sees QEMU's emulated topology; only the pins on the host prove cores.
    level = Level.OK if threads == 1 else Level.WARNING
    yield level, f"{threads} threads of a core"
