# SPDX-License-Identifier: Apache-2.0
"""A VM's threads run where libvirt bound them, off CPUs that other VMs own.

libvirt binds threads at their start; later rebinding (taskset, an agent, a changed
cgroup) does not show in the XML.  A cpuset overrules a thread's binding: a cpuset
without a vCPU's CPU moves the vCPU.

Nova gives each VM an I/O thread since 2026.1, but assigns it no disk: neither
LibvirtConfigGuestDisk nor LibvirtConfigGuestController of nova/virt/libvirt/config.py
(34.0.0) writes ``iothread=``.
"""

from contextlib import suppress
from xml.etree import ElementTree as ET

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Seen, vm_check
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import cgroups, processes
from nova_perfvm.measure.observed.domains import BESIDE_QEMU, Domain, attribute
from nova_perfvm.measure.observed.processes import Role, Task

_SOURCE = "virsh -r dumpxml of the VMs that run"
_REMEDY = (
    "openstack server reboot --hard {}; with emulator_threads: share the host needs "
    "[compute]cpu_shared_set"
)


def _pin(
    host: HostSubject, domain: Domain, name: str, pin: frozenset[int] | None
) -> tuple[Level, str]:
    """Judge the CPUs of an emulator or I/O thread; `pin` is None if not pinned."""
    if not pin:
        return Level.FAILURE, f"{name} has no pin: it floats over the host"
    vm_class, owned = host.class_of(domain), host.others_cpus(domain)
    # Without hw:emulator_threads_policy these threads run on the VM's own CPUs.
    if vm_class and vm_class.emulator_threads in {"share", "isolate"}:
        owned |= domain.pinned_cpus
    shown = f"{name} has CPUs {format_cpus(pin)}"
    if taken := pin & owned:
        return Level.FAILURE, f"{shown}, of which VMs own {format_cpus(taken)}"
    return Level.OK, shown


@vm_check(
    40,
    "hypervisor.emulator_pin",
    source=_SOURCE,
    remedy=_REMEDY,
)
def emulator_pin(host: HostSubject, domain: Domain) -> Seen:
    """QEMU's threads are kept off CPUs that VMs own."""
    yield _pin(host, domain, "QEMU", domain.emulatorpin)


@vm_check(
    45,
    "hypervisor.iothread_pin",
    source=_SOURCE,
    remedy=f"{_REMEDY}; Nova up to 34 has no disk served by an I/O thread",
)
def iothread_pin(host: HostSubject, domain: Domain) -> Seen:
    """I/O threads stay off CPUs that VMs own."""
    for number in range(1, domain.iothreads + 1):
        pin = domain.iothreadpins.get(number)
        yield _pin(host, domain, f"I/O thread {number}", pin)
    alone = [one for one in domain.disks if not _has_iothread(domain, one)]
    if names := ", ".join(attribute(one, "target", "dev") for one in alone):
        # Nova up to 34 gives no disk an I/O thread.
        yield Level.NOTE, f"QEMU's main thread serves {names}, no I/O thread"


def _has_iothread(domain: Domain, disk: ET.Element) -> bool:
    # Another process or hardware serves disks of these kinds.
    if disk.get("type") in BESIDE_QEMU:
        return True
    driver = domain.serving(disk)
    driver = None if driver is None else driver.find("driver")
    return driver is not None and (
        driver.get("iothread") is not None or driver.find("iothreads") is not None
    )


@vm_check(
    50,
    "hypervisor.threads_allowed",
    source="/proc/PID/task/*/status, Cpus_allowed_list",
    remedy="openstack server reboot --hard {0}, or without a stop virsh vcpupin, "
    "emulatorpin or iothreadpin {0}; then find what rebinds threads (taskset, "
    "tuned, numad, an agent)",
)
def threads_allowed(host: HostSubject, domain: Domain) -> Seen:
    """Threads may run only where libvirt's XML binds them."""
    process = host.process_of(domain)
    least = {
        Role.VCPU: domain.vcpus,
        Role.IOTHREAD: domain.iothreads,
        Role.VHOST: int(any(nic.by_kernel for nic in domain.interfaces)),
        Role.EMULATOR: 1,
    }
    for role, number in least.items():
        seen = len({task.number for task in process.of(role)})
        if seen < number:
            # QEMU names its threads only with debug-threads=on, as libvirt starts it.
            yield Level.UNKNOWN, f"{seen} of {number} {role.value}s are seen"
    others, unread = host.others_cpus(domain), None
    # KVM's own thread inherits the CPUs of the vCPU that created it;
    # hypervisor.vcpu_wait measures the time it costs.
    tasks = [task for task in process.tasks if task.role is not Role.KVM]
    for task in tasks:
        try:
            allowed = processes.allowed_cpus(host.collected, task.path)
        except NotReadError as exc:
            unread = exc
            continue
        outside = allowed - _expected(domain, task)
        # A stray vCPU breaks its VM's promise; a stray thread that of other VMs.
        hurts = task.role is Role.VCPU or outside & others
        if outside or not allowed:
            shown = f"{task} ({task.comm}) may use CPUs {format_cpus(allowed)}"
            yield Level.FAILURE if hurts else Level.WARNING, shown
    if unread is not None:
        raise unread
    yield Level.OK, f"{len(tasks)} threads keep to them"


def _expected(domain: Domain, task: Task) -> frozenset[int]:
    """Return the CPUs of a thread by the XML; all CPUs of the VM without a pin."""
    pin = domain.emulatorpin
    if task.role is Role.VCPU:
        pin = domain.vcpupins.get(task.number)
    elif task.role is Role.IOTHREAD:
        pin = domain.iothreadpins.get(task.number, pin)
    return pin or domain.pinned_cpus


@vm_check(
    55,
    "hypervisor.cpuset_cgroup",
    source=f"cpuset.* of {cgroups.ROOT}, the cgroups of its threads",
    remedy="take away what set it (AllowedCPUs= and AllowedMemoryNodes= of its "
    "unit and slices, or an agent), then openstack server reboot --hard {}",
)
def cpuset_cgroup(host: HostSubject, domain: Domain) -> Seen:
    """Cgroups let a VM have its CPUs, and its node's memory only."""
    process = host.process_of(domain)
    whole = cgroups.cpu_set(host.collected, process.path)
    groups = {}
    for task in process.of(Role.VCPU):
        with suppress(NotReadError):
            groups[task.number] = cgroups.cpu_set(host.collected, task.path)
    yield Level.OK, f"{len({whole, *groups.values()})} cpusets allow it"
    if not domain.vcpupins:
        yield Level.FAILURE, "no vCPU is pinned"
    for vcpu, cpus in domain.vcpupins.items():
        allowed = groups.get(vcpu, whole).cpus
        if not cpus <= allowed:
            shown = f"vCPU {vcpu} has CPU {format_cpus(cpus)}, its cpuset"
            yield Level.FAILURE, f"{shown} {format_cpus(allowed)}"
    nodes = host.nodes_of(domain.pinned_cpus)
    for mems in {group.mems for group in (whole, *groups.values())} - {nodes}:
        # The VM's bound memory stays on its nodes; QEMU's other memory may not.
        level = Level.WARNING if nodes <= mems else Level.FAILURE
        yield level, f"memory of nodes {format_cpus(mems) or 'none'}"
