# SPDX-License-Identifier: Apache-2.0
"""Each vCPU of a pinned VM owns a CPU on the VM's NUMA node, all the time.

Under ``smt: cores`` a vCPU owns a whole core, with both threads.

A vCPU waits while it is ready to run and another thread has its CPU; ``guest.steal``
measures the same in the guest.  Interrupts come on top: they run within the vCPU's
time, so neither the guest nor the scheduler counts them.  On a host whose CPUs all
belong to VMs, interrupts and host threads cannot avoid these CPUs, and the checks
judge their cost only.
"""

from typing import Final

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Cause, Seen, vm_check
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.checks.wait_limits import WARN_ABOVE, idle, level
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import schedstat, softirqs, stat, topology
from nova_perfvm.measure.observed.cpus import CPU, NODE
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import Role
from nova_perfvm.measure.observed.schedstat import Scheduled

_SOURCE: Final = f"/proc/PID/task/*/{schedstat.NAME}"


@vm_check(
    20,
    "hypervisor.smt",
    source=f"{CPU}/cpu*/topology/thread_siblings_list",
    remedy="give one thread of each core to cpu_dedicated_set, none to "
    "cpu_shared_set (nova-perfvm host config), and create the server anew; or "
    "declare smt: threads, if half a core is what is promised",
)
def smt(host: HostSubject, domain: Domain) -> Seen:
    """Each vCPU owns a whole core where its class promises cores."""
    vm_class = host.class_of(domain)
    if vm_class is None:
        yield Cause.FACTS_MISSING, "the VM's class is unknown: threads or cores?"
        return
    if vm_class.smt != "cores":
        yield Cause.NOTHING_TO_JUDGE, f"class {vm_class.name} promises threads only"
        return
    own = domain.pins.values()
    if not own:
        yield Level.UNKNOWN, "no vCPU of the VM is pinned"
        return
    others = host.cpu_sets.shared | host.others_cpus(domain)
    cores = topology.cores(host.collected, frozenset(own))
    yield Level.OK, f"on {len(cores)} cores"
    for core in sorted(cores):
        threads = format_cpus(core)
        if sum(cpu in core for cpu in own) > 1:
            yield Level.FAILURE, f"two vCPUs of the VM share a core: CPUs {threads}"
        elif others.intersection(core):
            yield Level.FAILURE, f"others' vCPUs are on its core: CPUs {threads}"


@vm_check(
    30,
    "hypervisor.vcpu_pins",
    source=f"virsh -r dumpxml of the VMs that run; {NODE}/node*/cpulist",
    remedy="openstack server reboot --hard {0} if a vCPU has no CPU of its own; if "
    "it stays so, a flavor with hw:cpu_policy=dedicated and hw:numa_nodes; else "
    "openstack server migrate {0}, and confirm: it gets other CPUs",
)
def vcpu_pins(host: HostSubject, domain: Domain) -> Seen:
    """Each vCPU has a CPU of its own, on the VM's NUMA node."""
    pins, own = domain.pins, domain.pinned_cpus
    yield Level.OK, f"CPUs {format_cpus(own)}"
    if not domain.all_pinned:
        loose = format_cpus(frozenset(range(domain.vcpus)) - pins.keys())
        yield Level.FAILURE, f"vCPUs {loose} have not one CPU each"
    if len({*pins.values()}) < len(pins):
        shown = f"{len(pins)} vCPUs are on {len({*pins.values()})} CPUs"
        yield Level.FAILURE, shown
    # A VM without NUMA topology counts as one node.
    found = [host.nodes_of(cpus) for cpus in (domain.cell_cpus or {0: own}).values()]
    vm_class = host.class_of(domain)
    wanted = vm_class.cells_per_vm if vm_class else len(found)
    nodes = frozenset().union(*found)
    if len(nodes) != wanted or any(len(on) != 1 for on in found):
        listed = ", ".join(format_cpus(on) or "none" for on in found)
        yield Level.FAILURE, f"on NUMA nodes {listed} of the host, not on {wanted}"
    for other in host.domains:
        met = own & host.cpus_of(other)
        if met and other.uuid != domain.uuid:
            yield Level.FAILURE, f"shares CPUs {format_cpus(met)} with {other.name}"


@vm_check(
    52,
    "hypervisor.vcpu_wait",
    title=f"Each vCPU waits for its CPU {WARN_ABOVE:.0%} of the time at most",
    source=_SOURCE,
    remedy="look who else may run on its CPUs: hypervisor.vcpu_pins, "
    "threads_allowed, emulator_pin and isolation say so; and what does: perf sched "
    "timehist, or ps -eLo psr,comm on the host",
)
def vcpu_wait(host: HostSubject, domain: Domain) -> Seen:
    """Judge the vCPU of a VM with the longest wait."""
    did, unread, seconds = _scheduled(host, domain)
    shares = {vcpu: one.waited_ns / 1e9 / seconds for vcpu, one in did.items()}
    worst, most = max(shares.items(), key=lambda item: item[1], default=(0, 0.0))
    if level(most) is Level.OK:
        # A single waiting vCPU delays the others: OK needs figures of all vCPUs.
        if unread is not None:
            raise unread
        if reason := idle({n: sum(one) / 1e9 / seconds for n, one in did.items()}):
            raise NotReadError(_SOURCE, reason)
    mean = sum(shares.values()) / len(shares)
    shown = f"vCPU {worst} waited {most:.1%} of {seconds:g} s for a CPU, all {mean:.1%}"
    yield level(most), shown


@vm_check(
    53,
    "hypervisor.host_time",
    title=f"Interrupts and other threads take {WARN_ABOVE:.0%} of a vCPU's CPU at most",
    source=f"{stat.PATH}; {_SOURCE}",
    remedy="leave a core of each node to the host (nova-perfvm host config "
    "--reserve 1), which takes a class with fewer vCPUs; or spread what interrupts "
    "over more CPUs (ethtool -L NIC combined N)",
)
def host_time(host: HostSubject, domain: Domain) -> Seen:
    """Judge the VM's CPU that loses most time to interrupts and other threads."""
    did, _, seconds = _scheduled(host, domain)
    times = stat.read(host.collected)
    taken = {
        cpu: (
            times[cpu].interrupted / times[cpu].total,
            # Other programs run while the vCPU waits, and while the vCPU is idle.
            max(
                did[vcpu].waited_ns / 1e9 / seconds,
                times[cpu].programs / times[cpu].total,
            ),
        )
        for vcpu, cpu in domain.pins.items()
        if vcpu in did and cpu in times and times[cpu].total
    }
    if len(taken) < domain.vcpus:
        reason = f"only {len(taken)} CPUs of {domain.vcpus} vCPUs are told of"
        raise NotReadError(f"{stat.PATH}; {_SOURCE}", reason)
    costs = {cpu: sum(shares) for cpu, shares in taken.items()}
    worst, most = max(costs.items(), key=lambda item: item[1])
    kind = softirqs.loudest(host.collected, worst)
    of = f"{taken[worst][0]:.1%} interrupts{kind and f', mostly {kind}'}"
    mean = sum(costs.values()) / len(costs)
    shown = f"others take {most:.1%} of CPU {worst} ({of}), {mean:.1%} of all"
    yield level(most), shown


def _scheduled(
    host: HostSubject, domain: Domain
) -> tuple[dict[int, Scheduled], NotReadError | None, float]:
    """Return {vCPU: scheduled times}, the last read error, and the seconds measured.

    :raises NotReadError: when a vCPU's thread was not collected, or after one look
    """
    tasks = {task.number: task for task in host.process_of(domain).of(Role.VCPU)}
    if len(tasks) < domain.vcpus:
        reason = f"{len(tasks)} of {domain.vcpus} threads of vCPUs are seen"
        raise NotReadError(_SOURCE, reason)
    if not host.collected.interval_s:
        raise NotReadError(_SOURCE, "the time between the two looks is not known")
    did, unread = {}, None
    for number, task in sorted(tasks.items()):
        try:
            did[number] = schedstat.read(host.collected, task.path)
        except NotReadError as exc:
            unread = exc
    return did, unread, host.collected.interval_s
