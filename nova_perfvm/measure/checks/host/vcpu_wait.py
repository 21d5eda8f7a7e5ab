# SPDX-License-Identifier: Apache-2.0
"""The vCPUs of pinned VMs do not wait for their CPUs.

The host's side of what ``guest.steal`` sees in the guest: the time in which a vCPU
was ready to run, and another thread had its CPU.
"""

from collections.abc import Iterator, Mapping

from nova_perfvm.measure.checks.check import Check, Finding, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject, of_pinned
from nova_perfvm.measure.checks.waiting import EXPECTED, FAIL_ABOVE, WARN_ABOVE
from nova_perfvm.measure.collected import NotReadError
from nova_perfvm.measure.observed import schedstat
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.measure.observed.processes import Role, Task
from nova_perfvm.measure.observed.schedstat import Scheduled
from nova_perfvm.measure.outcome import Status


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
        idle = [str(number) for number, one in did.items() if not one.ran_ns]
        if idle:
            reason = (
                f"{len(idle)} of {len(did)} vCPUs did not run between the looks ("
                f"{', '.join(idle[:5])}): put load on the VM, and collect again"
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
        otherwise=Status.FAIL if most > FAIL_ABOVE else Status.WARN,
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
