# SPDX-License-Identifier: Apache-2.0
"""What the vCPUs of pinned VMs lose to others on their CPUs.

The host's side of what ``guest.steal`` sees in the guest: the time in which a vCPU
was ready to run, and another thread had its CPU.  Interrupts are on top of that: they
run within the vCPU's time, so that neither the guest nor the scheduler counts them.
Where VMs own every CPU nobody can keep interrupts and the host's threads away, and
only what they cost can be judged.
"""

from collections.abc import Iterator
from typing import Final

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.checks.wait_limits import (
    EXPECTED,
    FAIL_ABOVE,
    WARN_ABOVE,
    idle,
)
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import schedstat, softirqs, stat
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import Role
from nova_perfvm.measure.observed.schedstat import Scheduled

_SPREAD: Final = (
    "leave a core of each node to the host (nova-perfvm host config --reserve 1), "
    "which takes a class with fewer vCPUs; or spread what interrupts over more CPUs "
    "(ethtool -L NIC combined N, /proc/irq/N/smp_affinity_list)"
)


def _look_at_wait(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Judge the vCPU of a VM that waited longest."""
    source, did, unread = _scheduled(subject, domain)
    seconds = _seconds(subject, source)
    shares = {number: one.waited_ns / 1e9 / seconds for number, one in did.items()}
    worst, most = max(shares.items(), key=lambda item: item[1], default=(0, 0.0))
    if most <= WARN_ABOVE:
        # One vCPU that waits makes the others wait: all have to be seen.
        if unread is not None:
            raise unread
        reason = idle({n: sum(one) / 1e9 / seconds for n, one in did.items()})
        if reason:
            yield skipped(domain.name, reason, source)
            return
    mean = sum(shares.values()) / len(shares)
    yield judged(
        domain.name,
        EXPECTED,
        f"vCPU {worst} waited {most:.1%} of {seconds:g} s for a CPU, all {mean:.1%}",
        source,
        holds=most <= WARN_ABOVE,
        otherwise=Level.FAILURE if most > FAIL_ABOVE else Level.WARNING,
        remedy="look who else may run on its CPUs: hypervisor.vcpu_pins, "
        "threads_allowed, emulator_pin and isolation say so; and what does: perf sched "
        "timehist, or ps -eLo psr,comm on the host",
    )


def _look_at_host_time(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Judge the CPU of a VM of which interrupts and other threads take most."""
    source, did, _ = _scheduled(subject, domain)
    seconds = _seconds(subject, source)
    times = stat.read(subject.collected)
    taken = {
        cpu: (times[cpu].interrupted / times[cpu].total, did[vcpu].waited_ns / 1e9)
        for vcpu, cpu in domain.pins.items()
        if vcpu in did and cpu in times and times[cpu].total
    }
    if len(taken) < domain.vcpus:
        reason = f"only {len(taken)} CPUs of {domain.vcpus} vCPUs are told of"
        raise NotReadError(f"{stat.PATH}; {source}", reason)
    costs = {cpu: share + waited / seconds for cpu, (share, waited) in taken.items()}
    worst = max(costs, key=lambda cpu: costs[cpu])
    most, mean = costs[worst], sum(costs.values()) / len(costs)
    kind = softirqs.loudest(subject.collected, worst)
    yield judged(
        domain.name,
        f"at most {WARN_ABOVE:.0%} of each of its CPUs",
        f"interrupts and the host's own threads take {most:.1%} of CPU {worst} "
        f"({taken[worst][0]:.1%} interrupts{kind and f', mostly {kind}'}), "
        f"{mean:.1%} of all",
        f"{stat.PATH}; {source}",
        holds=most <= WARN_ABOVE,
        otherwise=Level.FAILURE if most > FAIL_ABOVE else Level.WARNING,
        remedy=_SPREAD,
    )


def _seconds(subject: HostSubject, source: str) -> float:
    if not subject.collected.interval_s:
        raise NotReadError(source, "the time between the two looks is not known")
    return subject.collected.interval_s


def _scheduled(
    subject: HostSubject, domain: Domain
) -> tuple[str, dict[int, Scheduled], NotReadError | None]:
    """Return where it was read what each vCPU did, and why that of some is not known.

    :raises NotReadError: when not all of its threads were seen
    """
    process = subject.process_of(domain)
    tasks = {task.number: task for task in process.of(Role.VCPU)}
    source = f"{process.path}/task/*/{schedstat.NAME}"
    if len(tasks) < domain.vcpus:
        raise NotReadError(
            source, f"{len(tasks)} of {domain.vcpus} threads of vCPUs are seen"
        )
    did, unread = {}, None
    for number, task in sorted(tasks.items()):
        try:
            did[number] = schedstat.read(subject.collected, task.path)
        except NotReadError as exc:
            unread = exc
    return source, did, unread


CHECKS = (
    Check(
        52,
        "hypervisor.vcpu_wait",
        "vCPUs of pinned VMs do not wait for their CPUs",
        of_pinned(_look_at_wait),
    ),
    Check(
        53,
        "hypervisor.host_time",
        "Interrupts and the host's own threads take little of the CPUs of VMs",
        of_pinned(_look_at_host_time),
    ),
)
