# SPDX-License-Identifier: Apache-2.0
"""The vCPUs of pinned VMs do not wait for their CPUs.

The host's side of what ``guest.steal`` sees in the guest: the time in which a vCPU
was ready to run, and another thread had its CPU.

A vCPU that hardly wants to run hardly waits, whoever else is there: one that ran 2 ms
of 5 s and waited 8 ms lost most of its time, and is at 0.16 %.  So a vCPU that asked
for less than 5 % of the time, five times what may be lost, tells nothing.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.checks.wait_limits import EXPECTED, FAIL_ABOVE, WARN_ABOVE
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import schedstat
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import Role, Task
from nova_perfvm.measure.observed.schedstat import Scheduled

# Of the time between the looks, on a CPU or ready for one.
_LEAST_ASKED: Final = 0.05


def look(subject: HostSubject, domain: Domain) -> Iterator[Finding]:
    """Judge the vCPU of a VM that waited longest."""
    process = subject.process_of(domain)
    tasks = {task.number: task for task in process.of(Role.VCPU)}
    source = f"{process.path}/task/*/{schedstat.NAME}"
    if len(tasks) < domain.vcpus:
        raise NotReadError(
            source, f"{len(tasks)} of {domain.vcpus} threads of vCPUs are seen"
        )
    did, unread = _did(subject, tasks)
    seconds = subject.collected.interval_s
    if not seconds:
        raise NotReadError(source, "the time between the two looks is not known")
    shares = {number: one.waited_ns / 1e9 / seconds for number, one in did.items()}
    worst, most = max(shares.items(), key=lambda item: item[1], default=(0, 0.0))
    if most <= WARN_ABOVE:
        # One vCPU that waits makes the others wait: all have to be seen.
        if unread is not None:
            raise unread
        least_ns = _LEAST_ASKED * seconds * 1e9
        idle = [str(number) for number, one in did.items() if sum(one) < least_ns]
        if idle:
            reason = (
                f"{len(idle)} of {len(did)} vCPUs asked for less than "
                f"{_LEAST_ASKED:.0%} of the time between the looks ("
                f"{', '.join(idle[:5])}): put load on it, and collect again"
            )
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


def _did(
    subject: HostSubject, tasks: Mapping[int, Task]
) -> tuple[dict[int, Scheduled], NotReadError | None]:
    """Return what each vCPU did, and why that of some is not known."""
    did, unread = {}, None
    for number, task in sorted(tasks.items()):
        try:
            did[number] = schedstat.read(subject.collected, task.path)
        except NotReadError as exc:
            unread = exc
    return did, unread


CHECK = Check(
    52,
    "hypervisor.vcpu_wait",
    "vCPUs of pinned VMs do not wait for their CPUs",
    of_pinned(look),
)
