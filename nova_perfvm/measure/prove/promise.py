# SPDX-License-Identifier: Apache-2.0
"""What a flavor promises, and which evidence that rests on.

:data:`EVIDENCE` and :data:`ENDPOINTS` are the only place that says it.  Whatever a
check calls a failure refutes it, whether the promise rests on it or
not; these tables say what must have been seen at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple

from nova_perfvm.generate.flavors import PolicyFlavor
from nova_perfvm.measure.samples import Better
from nova_perfvm.policy import SMALL_PAGES, VMClass
from nova_perfvm.printable import number_of

# once: one finding that is not unknown; each VM: one such finding for each judged VM;
# seen: the check ran, perhaps without anything to judge.
Proof = Literal["once", "each VM", "seen"]
Needs = Callable[[VMClass], bool]


class Evidence(NamedTuple):
    """What a check has to prove.

    :ivar needed: whether a class's proof fails if the check's result is unknown
    :ivar why: reason why the check is needed, and for which classes it is not
    """

    needed: Needs
    why: str
    proof: Proof


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
    return vm_class.mem_page_size not in SMALL_PAGES


def iops(vm_class: VMClass) -> bool:
    """Return whether a class promises IOPS."""
    return bool(vm_class.disk.read_iops or vm_class.disk.write_iops)


_LOSSES: Final = "lost packets halve what TCP carries"
_COSTS: Final = "at worst a WARN: it costs performance at times and breaks no promise"

# {(which classes need it, how): {check: why}}.
_TABLES: Final[dict[tuple[Needs, Proof], dict[str, str]]] = {
    # Once, whatever the class: the files are about the same VMs, hosts and hours...
    (_always, "once"): {
        "proof.guest_on_host": "the files must belong to the host's VMs",
        "proof.every_vm": "an unexamined VM is not proven",
        "proof.flavor": "else another promise is judged",
        "proof.vcpus": "the flavor promises them",
        "proof.memory": "the flavor promises it",
        "proof.same_time": "hosts change: VMs come, threads move",
        "proof.same_state": "a moved VM or a changed host is another machine",
        "proof.clocks": "a clock that is 5 % slow makes all rates 5 % higher",
        "proof.at_once": "VMs that run one after the other do not compete",
        "proof.distinct": "a copy of a file proves nothing",
        "proof.same_settings": "huge pages and mitigations of one side only flatter it",
        "proof.counters": "heat, bad memory and neighbours cost while nobody looks",
        "proof.measured_here": "else other machines were compared",
        "proof.baseline_alone": "a baseline from which busy VMs take CPUs flatters "
        "them",
        "proof.measured": "a missing figure may hide a bad one",
        # ...and what does not depend on pins.
        "hypervisor.node_shape": "the policy is for it; flavors without sizes need no "
        "room",
        "hypervisor.memoryless_nodes": "all memory of a VM there is remote; nodes "
        "without CPUs hold no vCPU",
        "hypervisor.hardware": "the CPUs of a host that is a VM are somebody else's",
        "hypervisor.softnet_drops": _LOSSES,
        "hypervisor.nic_losses": _LOSSES,
        "hypervisor.class_rules": "neighbours take what they share",
        "guest.shape": "the class promises it",
        "guest.softnet_drops": _LOSSES,
        "guest.nic_losses": _LOSSES,
        "guest.kernel_line": "other guests of the flavor lack such arguments",
    },
    # For each VM with pinned vCPUs.
    (_pinned, "each VM"): {
        "hypervisor.vcpu_pins": "a vCPU owns its CPU",
        "hypervisor.virtual_cpu": "an emulated CPU, or half a CPU, is not a whole CPU",
        "hypervisor.cpu_limits": "the vCPU owns the CPU all the time",
        "hypervisor.io_limits": "I/O measured once must not be throttled later",
        "hypervisor.virtual_devices": "queues and figures rest on what serves them",
        "hypervisor.memory_whole": "absent memory is on no node",
        "hypervisor.numatune": "memory is near",
        "hypervisor.emulator_pin": "QEMU leaves others alone",
        "hypervisor.iothread_pin": "I/O threads leave other VMs alone",
        "hypervisor.threads_allowed": "libvirt's XML is an intention, the kernel's "
        "masks are the fact",
        "hypervisor.vcpu_wait": "a vCPU that nobody loads waits for nobody",
        "hypervisor.host_time": "interrupts are in no counter of waiting or stealing",
        "hypervisor.swap": "memory in swap is a disk",
        "hypervisor.cpuset_cgroup": "a cgroup overrules what a thread was bound to",
        "hypervisor.memory_local": "2 % of remote pages cost",
    },
    (_pinned, "once"): {
        "proof.cpu_flags": "the VM's CPU is the host's: programs choose by its flags",
        "hypervisor.cpu_sets": "hypervisor.vcpu_pins proves what VMs that run own; "
        "without Nova's sets (--nova-conf, --snapshot) only who may come is open",
        "hypervisor.ksm": "a page that two VMs share is remote for one",
        "guest.steal": "nobody else uses its CPUs; where the counter never moves, "
        "hypervisor.vcpu_wait of the VM tells it",
    },
    (_pinned, "seen"): {
        "hypervisor.irq_affinity": "interrupts take a vCPU's time; where VMs own every "
        "CPU hypervisor.host_time judges what they cost",
        "hypervisor.isolation": "vCPUs on isolated CPUs and others are unequal; what "
        "may come is open without Nova's sets",
    },
    (_cores, "each VM"): {
        "hypervisor.smt": "half a core is half as fast",
    },
    (_huge, "each VM"): {
        "hypervisor.huge_pages": "the class promises huge pages; others need none",
    },
    (iops, "once"): {
        "proof.promised_iops": "a share of a slow disk is no number of IOPS",
        "proof.disk_medium": "a cache, or another disk, has other IOPS",
    },
    (_queues, "once"): {
        "guest.nic_queues": "the class promises them",
        "guest.nic_spread": "one direction under load shows that it works",
    },
    (_queues, "seen"): {
        "hypervisor.interface_queues": "the class promises them; of NICs whose "
        "hardware decides guest.nic_queues tells them",
        "guest.nic_vectors": "queues served by a single CPU are one queue",
    },
    (_never, "seen"): {
        "hypervisor.host_options": _COSTS,
        "hypervisor.declared_keys": "the VM's XML tells; without a declared key there "
        "is nothing to judge",
        "hypervisor.governor": "where no driver tells, the firmware decides; its "
        "slowest fails",
        "hypervisor.frequency": "where no driver tells, the firmware decides; unequal "
        "CPUs fail",
        "hypervisor.clocksource": "what guests read of it guest.clocksource says",
        "hypervisor.nic_node": _COSTS,
        "hypervisor.nic_settings": _COSTS,
        "guest.nic_settings": _COSTS,
        "hypervisor.tuned": _COSTS,
        "hypervisor.numa_balancing": _COSTS,
        "guest.xps": _COSTS,
        "guest.rps": _COSTS,
        "guest.disk_queues": _COSTS,
        "guest.disk_scheduler": _COSTS,
        "guest.clocksource": _COSTS,
    },
}
EVIDENCE: Final = {
    code: Evidence(needed, why, proof)
    for (needed, proof), table in _TABLES.items()
    for code, why in table.items()
}


class Endpoint(NamedTuple):
    """A figure that the verdict rests on, declared before anything is measured.

    A proof needs every row of every endpoint to pass; other rows are information.

    :ivar metrics: regular expression for the names of the figure's metrics
    :ivar each_vcpu: whether the figure counts only with as many threads as vCPUs
    """

    name: str
    metrics: str
    better: Better
    needed: Needs
    why: str
    each_vcpu: bool = True

    def is_of(self, metric: str, better: Better) -> bool:
        """Return whether a metric is one of the endpoint."""
        return better == self.better and bool(re.fullmatch(self.metrics, metric))


ENDPOINTS: Final = (
    Endpoint(
        *("CPU throughput", r"cpu\.events_per_second", "higher", _always),
        "with fewer threads than vCPUs the host's scheduler hides a CPU that is shared",
    ),
    Endpoint(
        *("tail latency", r"scheduling\.(loaded\.)?latency_p99_9_us", "lower", _always),
        "means hide what users wait for: LY's VM did 97.7 % of its host's work, and "
        "its worst latency was 20 times the host's",
    ),
    Endpoint(
        *("memory throughput", r"memory\..*per_second", "higher", _pinned),
        "it is promised near",
    ),
    Endpoint(
        *("memory latency", r"memory\.random_access_ns", "lower", _pinned),
        "a page on another node is read later, however many threads hide it",
        each_vcpu=False,
    ),
    Endpoint(
        *("network throughput", r"network\..*bits?_per_second", "higher", _queues),
        "one connection uses one queue, and the class promises one for each vCPU",
    ),
    Endpoint(
        *("disk throughput", r"disk\..*iops", "higher", iops),
        "the class promises IOPS",
        each_vcpu=False,
    ),
)


def is_endpoint(
    metric: str, better: Better, threads: int, flavor: PolicyFlavor, vm_class: VMClass
) -> bool:
    """Return whether a figure is of an endpoint of a flavor; else it is information."""
    return any(
        one.is_of(metric, better)
        and one.needed(vm_class)
        and (threads == flavor.vcpus or not one.each_vcpu)
        for one in ENDPOINTS
    )


def words(flavor: PolicyFlavor, vm_class: VMClass) -> Iterator[str]:
    """Yield a sentence for each thing that a flavor promises."""
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
