# SPDX-License-Identifier: Apache-2.0
"""The kernel lets each thread of a VM run where libvirt's XML says, and nowhere else.

libvirt binds threads when it starts them; whatever rebinds them later (taskset, an
agent, a cgroup that was changed) does not change the XML.
"""

from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.checks.qemu_threads import others_cpus
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import processes
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import Role, Task

# Kinds of interfaces that a switch in user space or hardware serves, not the kernel.
_OTHERS_SERVE = ("vhostuser", "vdpa", "hostdev")


def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Look at the threads of a VM, by what they do."""
    process = subject.process_of(domain)
    if not process.tasks:
        raise NotReadError(f"{process.path}/task", "none of its threads was collected")
    # KVM's own thread is where the vCPU was that made it; what it takes of that is
    # told by hypervisor.vcpu_wait.
    for role in (role for role in Role if role is not Role.KVM):
        name = f"{domain.name}: {role.value}s"
        tasks = process.of(role)
        missing = _missing(domain, role, tasks)
        if missing:
            yield skipped(name, missing, f"{process.path}/task/*/comm")
            continue
        try:
            yield from _judged(subject, domain, name, tasks)
        except NotReadError as exc:
            yield skipped(name, exc.reason, exc.place)


def _missing(domain: Domain, role: Role, tasks: tuple[Task, ...]) -> str:
    """Return why nobody can tell of some threads; empty if one can."""
    if role is Role.VCPU and len({task.number for task in tasks}) < domain.vcpus:
        return (
            f"{len(tasks)} of {domain.vcpus} are seen: QEMU names its threads only "
            "with debug-threads=on, as libvirt starts it"
        )
    if role is Role.IOTHREAD and len(tasks) < domain.iothreads:
        return f"{len(tasks)} of {domain.iothreads} are seen"
    if role is Role.VHOST and not any(
        i.model == "virtio" and i.kind not in _OTHERS_SERVE for i in domain.interfaces
    ):
        return ""
    return "" if tasks or role is Role.IOTHREAD else "none is seen"


def _expected(domain: Domain, task: Task) -> frozenset[int]:
    """Return the CPUs of a thread by the XML; without a pin those of the VM."""
    pin = domain.emulatorpin
    if task.role is Role.VCPU:
        pin = domain.vcpupins.get(task.number)
    elif task.role is Role.IOTHREAD:
        pin = domain.iothreadpins.get(task.number, pin)
    return pin or domain.pinned_cpus


def _judged(
    subject: HostSubject,
    domain: Domain,
    name: str,
    tasks: tuple[Task, ...],
) -> Iterator[Finding]:
    taken = others_cpus(subject, domain)
    strays, hurts = [], False
    for task in tasks:
        allowed = processes.allowed_cpus(subject.collected, task.path)
        outside = allowed - _expected(domain, task)
        if outside or not allowed:
            strays.append(f"{task} ({task.comm}) may use CPUs {format_cpus(allowed)}")
            hurts = hurts or task.role is Role.VCPU or bool(outside & taken)
    if not tasks:
        return
    path = tasks[0].path
    if len(tasks) > 1:
        path = f"{path.rpartition('/')[0]}/*"
    yield judged(
        name,
        "only the CPUs of libvirt's XML",
        f"{len(strays)} of {len(tasks)} elsewhere: {'; '.join(strays[:3])}"
        if strays
        else f"all {len(tasks)} keep to them",
        f"{path}/status, Cpus_allowed_list; {domain.source}",
        holds=not strays,
        # Of a vCPU it breaks the promise to itself, of another thread that to others.
        otherwise=Level.FAILURE if hurts else Level.WARNING,
        remedy=f"openstack server reboot --hard {domain.uuid}, or without a stop virsh "
        f"vcpupin, emulatorpin or iothreadpin {domain.name}; then find what rebinds "
        "threads (taskset, tuned, numad, an agent)",
    )


CHECK = Check(
    50,
    "hypervisor.threads_allowed",
    "The kernel binds threads as libvirt's XML says",
    of_pinned(look),
)
