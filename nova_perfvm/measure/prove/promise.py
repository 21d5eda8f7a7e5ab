# SPDX-License-Identifier: Apache-2.0
"""What a flavor promises, and which evidence that rests on.

:data:`EVIDENCE` and :data:`ENDPOINTS` are the only place that says it.  Whatever a
check calls a failure refuses the certificate, whether the promise rests on it or
not; these tables say what must have been seen at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.samples import Better
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import number_of

# once: something that is not unknown; each VM: of each VM that is certified; seen: the
# check has run, and may have had nothing to judge.
Proof = Literal["once", "each VM", "seen"]
Needs = Callable[[VMClass], bool]


class Evidence(NamedTuple):
    """What a check has to prove.

    :ivar needed: for which classes; for the others an unknown will do
    :ivar unless: causes of an unknown that leave nothing to prove
    :ivar why: why it is needed, and why those unknowns do not matter; where it never
        is, why not
    :ivar settled: of a check of guests: the cause of an unknown, and the check of the
        host that proves the same if it passes for the same VM
    """

    needed: Needs
    why: str
    proof: Proof = "once"
    unless: frozenset[Cause] = frozenset()
    settled: tuple[Cause, str] | None = None


def _always(_vm_class: VMClass) -> bool:
    return True


def _never(_vm_class: VMClass) -> bool:
    return False


def _pinned(vm_class: VMClass) -> bool:
    return vm_class.pinned


def _cores(vm_class: VMClass) -> bool:
    return vm_class.pinned and vm_class.smt == "cores"


def _queues(vm_class: VMClass) -> bool:
    return vm_class.vif_multiqueue


def _huge(vm_class: VMClass) -> bool:
    return vm_class.mem_page_size not in {None, "small"}


def _iops(vm_class: VMClass) -> bool:
    return bool(vm_class.disk.read_iops or vm_class.disk.write_iops)


_COSTS: Final = "at worst a WARN: it costs performance at times and breaks no promise"
EVIDENCE: Final[dict[str, Evidence]] = {
    # The inputs are about the same VMs, hosts and hours.
    "certify.guest_on_host": Evidence(_always, "else the files are of other VMs"),
    "certify.every_vm": Evidence(_always, "a VM that nobody looked at is not proved"),
    "certify.flavor": Evidence(_always, "else another promise is judged"),
    "certify.vcpus": Evidence(_always, "the flavor promises them"),
    "certify.cpu_flags": Evidence(
        _pinned,
        "the VM's CPU is the host's: programs choose by flags what they compute with",
        unless=frozenset({Cause.HARDWARE_DECIDES}),
    ),
    "certify.memory": Evidence(_always, "the flavor promises it"),
    "certify.same_time": Evidence(_always, "hosts change: VMs come, threads move"),
    "certify.same_state": Evidence(
        _always, "a VM that moved, or a host that was changed, is another one"
    ),
    "certify.clocks": Evidence(
        _always, "a clock that is 5 % slow makes all rates 5 % higher"
    ),
    "certify.at_once": Evidence(_always, "one after the other, nobody is in the way"),
    "certify.distinct": Evidence(_always, "a copy of a file proves nothing"),
    "certify.no_losses": Evidence(_always, "lost packets halve what TCP carries"),
    "certify.measured_here": Evidence(_always, "else other machines were compared"),
    "certify.baseline_alone": Evidence(
        _always, "busy VMs take CPUs from the baseline, and then they look fast"
    ),
    "certify.measured": Evidence(_always, "a figure that is missing hides what is bad"),
    # Hosts.
    "hypervisor.node_shape": Evidence(
        _always,
        "the policy is written for it; flavors without sizes need no room",
        unless=frozenset({Cause.FLAVORS_UNKNOWN}),
    ),
    "hypervisor.memoryless_nodes": Evidence(
        _always,
        "all memory of a VM there is remote; nodes without CPUs hold no vCPU",
        unless=frozenset({Cause.NO_CPU}),
    ),
    "hypervisor.smt": Evidence(
        _cores,
        "half a core is half as fast; VMs of other classes have no such promise",
        "each VM",
        frozenset({Cause.CLASS_UNKNOWN, Cause.NO_WHOLE_CORES}),
    ),
    "hypervisor.cpu_sets": Evidence(
        _pinned,
        "what VMs that run own is proved by hypervisor.vcpu_pins; without Nova's sets "
        "(--nova-conf, --snapshot) only who may come is open",
        unless=frozenset(
            {Cause.NOVA_SETS_UNKNOWN, Cause.OTHERS_MAY_COME, Cause.POWERED_DOWN}
        ),
    ),
    "hypervisor.vcpu_pins": Evidence(_pinned, "a vCPU owns its CPU", "each VM"),
    "hypervisor.virtual_cpu": Evidence(
        _pinned, "an emulated CPU, or half of them, is no CPU of its own", "each VM"
    ),
    "hypervisor.cpu_limits": Evidence(
        _pinned, "a CPU of its own is its own all the time", "each VM"
    ),
    "hypervisor.io_limits": Evidence(
        _pinned, "what is measured once must not be cut later", "each VM"
    ),
    "hypervisor.virtual_devices": Evidence(
        _pinned, "queues and figures rest on what serves them", "each VM"
    ),
    "hypervisor.memory_whole": Evidence(
        _pinned, "memory that is not there is nowhere near", "each VM"
    ),
    "hypervisor.numatune": Evidence(_pinned, "memory is near", "each VM"),
    "hypervisor.emulator_pin": Evidence(_pinned, "QEMU leaves others alone", "each VM"),
    "hypervisor.iothread_pin": Evidence(_pinned, "so do its I/O threads", "each VM"),
    "hypervisor.threads_allowed": Evidence(
        _pinned,
        "libvirt's XML is an intention, the kernel's masks are the fact",
        "each VM",
    ),
    "hypervisor.vcpu_wait": Evidence(
        _pinned, "a vCPU that nobody loads waits for nobody", "each VM"
    ),
    "hypervisor.host_time": Evidence(
        _pinned, "interrupts are in no counter of waiting or stealing", "each VM"
    ),
    "hypervisor.hardware": Evidence(
        _always, "the CPUs of a host that is a VM are somebody else's"
    ),
    "hypervisor.swap": Evidence(_pinned, "memory in swap is a disk", "each VM"),
    "hypervisor.softnet_drops": Evidence(
        _always, "lost packets halve what TCP carries"
    ),
    "hypervisor.nic_losses": Evidence(_always, "lost packets halve what TCP carries"),
    "hypervisor.cpuset_cgroup": Evidence(
        _pinned, "a cgroup overrules what a thread was bound to", "each VM"
    ),
    "hypervisor.memory_local": Evidence(_pinned, "2 % of remote pages cost", "each VM"),
    "hypervisor.huge_pages": Evidence(
        _huge,
        "the class promises them; other VMs of the host may have none",
        "each VM",
        frozenset({Cause.NO_HUGE_PAGES}),
    ),
    "hypervisor.interface_queues": Evidence(
        _queues,
        "the class promises them; of NICs whose hardware decides guest.nic_queues "
        "tells them",
        "seen",
        frozenset({Cause.HARDWARE_DECIDES}),
    ),
    "hypervisor.irq_affinity": Evidence(
        _pinned,
        "interrupts take a vCPU's time; where VMs own every CPU hypervisor.host_time "
        "judges what they cost",
        "seen",
        unless=frozenset({Cause.VMS_OWN_ALL}),
    ),
    "hypervisor.ksm": Evidence(_pinned, "a page that two VMs share is remote for one"),
    "hypervisor.isolation": Evidence(
        _pinned,
        "vCPUs on isolated CPUs and others are unequal; what may come is open "
        "without Nova's sets",
        "seen",
        frozenset({Cause.NOVA_SETS_UNKNOWN, Cause.VMS_OWN_ALL}),
    ),
    "hypervisor.class_rules": Evidence(_always, "neighbours take what they share"),
    "hypervisor.nic_node": Evidence(_never, _COSTS),
    "hypervisor.governor": Evidence(
        _never, "where no driver tells, the firmware decides; its slowest fails"
    ),
    "hypervisor.frequency": Evidence(
        _never, "where no driver tells, the firmware decides; unequal CPUs fail"
    ),
    "hypervisor.clocksource": Evidence(
        _never, "what guests read of it guest.clocksource says"
    ),
    "hypervisor.tuned": Evidence(_never, _COSTS),
    "hypervisor.numa_balancing": Evidence(_never, _COSTS),
    # Guests.
    "guest.shape": Evidence(
        _always,
        "the class promises it",
        unless=frozenset({Cause.ANY_NUMBER, Cause.NO_WHOLE_CORES}),
    ),
    "guest.nic_queues": Evidence(_queues, "the class promises them"),
    "guest.nic_vectors": Evidence(
        _queues,
        "queues of which one CPU serves all are one queue; one CPU has no choice",
        "seen",
        frozenset({Cause.ONE_CPU, Cause.ONE_QUEUE}),
    ),
    "guest.nic_spread": Evidence(
        _queues,
        "one direction under load shows that it works; an idle one need not",
        unless=frozenset(
            {Cause.TOO_FEW_INTERRUPTS, Cause.ONE_CPU, Cause.NO_MULTIQUEUE}
        ),
    ),
    "guest.steal": Evidence(
        _pinned,
        "nobody else uses its CPUs; on a host that isolates them well the counter "
        "never moves, and hypervisor.vcpu_wait of the VM tells it",
        settled=(Cause.NEVER_STOLEN, "hypervisor.vcpu_wait"),
    ),
    "guest.softnet_drops": Evidence(_always, "lost packets halve what TCP carries"),
    "guest.nic_losses": Evidence(_always, "lost packets halve what TCP carries"),
    "guest.kernel_line": Evidence(_always, "other guests of the flavor are not so"),
    "guest.xps": Evidence(_never, _COSTS),
    "guest.rps": Evidence(_never, _COSTS),
    "guest.disk_queues": Evidence(_never, _COSTS),
    "guest.disk_scheduler": Evidence(_never, _COSTS),
    "guest.clocksource": Evidence(_never, _COSTS),
}


class Endpoint(NamedTuple):
    """A figure that the verdict rests on, declared before anything is measured.

    All rows of all endpoints have to pass; any other row is information.

    :ivar metrics: what the names of such metrics match
    :ivar each_vcpu: whether it counts only with as many threads as vCPUs
    """

    name: str
    metrics: re.Pattern[str]
    better: Better
    needed: Needs
    why: str
    each_vcpu: bool = True

    def is_of(self, metric: str, better: Better) -> bool:
        """Return whether a metric is such a figure."""
        return better == self.better and self.metrics.fullmatch(metric) is not None


ENDPOINTS: Final = (
    Endpoint(
        "CPU throughput",
        re.compile(r"cpu\.events_per_second"),
        "higher",
        _always,
        "with fewer threads than vCPUs the host's scheduler hides a CPU that is shared",
    ),
    Endpoint(
        "tail latency",
        re.compile(r"scheduling\.(loaded\.)?latency_p99_9_us"),
        "lower",
        _always,
        "means hide what users wait for: LY's VM did 97.7 % of its host's work, and "
        "its worst latency was 20 times the host's",
    ),
    Endpoint(
        "memory throughput",
        re.compile(r"memory\..*per_second"),
        "higher",
        _pinned,
        "it is promised near",
    ),
    Endpoint(
        "memory latency",
        re.compile(r"memory\.random_access_ns"),
        "lower",
        _pinned,
        "a page on another node is read later, however many threads hide it",
        each_vcpu=False,
    ),
    Endpoint(
        "network throughput",
        re.compile(r"network\..*bits?_per_second"),
        "higher",
        _queues,
        "one connection uses one queue, and the class promises one for each vCPU",
    ),
    Endpoint(
        "disk throughput",
        re.compile(r"disk\..*iops"),
        "higher",
        _iops,
        "the class promises IOPS",
        each_vcpu=False,
    ),
)


def endpoint_of(
    metric: str, better: Better, threads: int, flavor: PolicyFlavor, vm_class: VMClass
) -> Endpoint | None:
    """Return the endpoint of a flavor that a figure is of; None of information."""
    for one in ENDPOINTS:
        if one.is_of(metric, better) and one.needed(vm_class):
            return one if threads == flavor.vcpus or not one.each_vcpu else None
    return None


def words(flavor: PolicyFlavor, vm_class: VMClass) -> Iterator[str]:
    """Say what a flavor promises, one sentence each."""
    yield f"{flavor.vcpus} vCPUs and {flavor.memory_mb / 1024:g} GiB of memory"
    if vm_class.pinned:
        what = "core" if vm_class.smt == "cores" else "thread of a core"
        yield f"each vCPU has a {what} of its own, and nobody else runs there"
        yield f"CPUs and memory are on {number_of(vm_class.cells_per_vm, 'NUMA node')}"
    else:
        yield "its vCPUs share the host's CPUs with other VMs"
    if vm_class.max_per_host is not None:
        yield f"at most {vm_class.max_per_host} VMs of the class on a host"
    where = {"host": "the host", "cell": "its NUMA node"}.get(vm_class.exclusive)
    if where:
        yield f"no VM of another class on {where}"
    if vm_class.vif_multiqueue:
        yield "each network interface has a queue for each vCPU"
    if _huge(vm_class):
        yield f"its memory is in huge pages ({vm_class.mem_page_size})"
    for name, number in (
        ("reads", vm_class.disk.read_iops),
        ("writes", vm_class.disk.write_iops),
    ):
        if number:
            yield f"{number} disk {name} per second"
