# SPDX-License-Identifier: Apache-2.0
"""Interrupts of devices stay off the CPUs that VMs own.

One takes about 10 us with what follows from it: 1,000 a second are 1 % of a CPU,
what ``guest.steal`` calls too much; 10 a second are not to be measured.  Where VMs own
every CPU nobody can keep them off, and ``hypervisor.host_time`` judges what they cost.
"""

from collections.abc import Iterator

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, judged, skipped
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import cpus, interrupts
from nova_perfvm.measure.observed.interrupts import Vector

WARN_ABOVE_PER_S = 10
FAIL_ABOVE_PER_S = 1000
# Of devices that were passed through: they interrupt for their VM.
_OF_GUESTS = "vfio"
_REMEDY = (
    "stop irqbalance, or give it IRQBALANCE_BANNED_CPULIST={cpus}; move them: echo "
    "CPUs > /proc/irq/N/smp_affinity_list, or boot with isolcpus=managed_irq,{cpus} "
    "for those that the kernel manages"
)


def find(subject: HostSubject) -> Iterator[Finding]:
    """Look where interrupts may fire, and where they did."""
    dedicated = subject.cpu_sets.dedicated
    if not dedicated:
        return
    for name, look in (("affinity", _affinity), ("fired", _fired)):
        try:
            yield look(subject, name, dedicated)
        except NotReadError as exc:
            yield skipped(name, exc.reason, exc.place)


def _devices(vectors: tuple[Vector, ...]) -> list[Vector]:
    return [
        vector
        for vector in vectors
        if not any(name.startswith(_OF_GUESTS) for name in vector.names)
    ]


def _affinity(subject: HostSubject, name: str, dedicated: frozenset[int]) -> Finding:
    text = subject.collected.text(interrupts.PATH)
    if not subject.online.numbers - dedicated:
        reason = (
            "VMs own every CPU, so interrupts are on theirs: see hypervisor.cpu_sets"
        )
        return skipped(name, reason, subject.cpu_sets.source, cause=Cause.VMS_OWN_ALL)
    # Vectors that never fire disturb nobody: drivers take one for each CPU.
    fired = [v for v in _devices(interrupts.parse(text).vectors) if v.total]
    bad, seen, file = [], 0, "effective_affinity_list"
    for vector in fired:
        found = _allowed(subject, vector)
        if found is None:
            continue
        seen += 1
        if found & dedicated:
            bad.append(f"{vector.irq} ({', '.join(vector.names)})")
    if not seen:
        raise NotReadError(f"/proc/irq/*/{file}", "it was not collected")
    return judged(
        name,
        f"device interrupts off CPUs {format_cpus(dedicated)}",
        f"{len(bad)} of {seen} that have fired are on them: {', '.join(bad[:5])}"
        if bad
        else f"all {seen} that have fired are elsewhere",
        f"/proc/irq/*/{file}; {subject.cpu_sets.source}",
        holds=not bad,
        otherwise=Level.WARNING,
        remedy=_REMEDY.format(cpus=format_cpus(dedicated)),
    )


def _allowed(subject: HostSubject, vector: Vector) -> frozenset[int] | None:
    for file in ("effective_affinity_list", "smp_affinity_list"):
        try:
            return cpus.some_numbers(
                subject.collected, f"/proc/irq/{vector.irq}/{file}"
            )
        except NotReadError:
            continue
    return None


def _fired(subject: HostSubject, name: str, dedicated: frozenset[int]) -> Finding:
    subject.collected.looks(interrupts.PATH)
    seconds = subject.collected.interval_s
    if not seconds:
        reason = "the time between the two looks is not known"
        raise NotReadError(interrupts.PATH, reason)
    vectors = _devices(subject.interrupts.vectors)
    counts = interrupts.by_cpu(vectors)
    if not counts.total():
        reason = "no device interrupted between the two looks: that tells nothing"
        raise NotReadError(interrupts.PATH, reason)
    rates = {cpu: counts[cpu] / seconds for cpu in dedicated}
    worst = max(rates, key=lambda cpu: rates[cpu])
    most = rates[worst]
    if not subject.online.numbers - dedicated:
        reason = (
            f"{most:.0f} a second on CPU {worst}, and VMs own every CPU: what they "
            "cost hypervisor.host_time says"
        )
        source = subject.interrupts.source
        return skipped(name, reason, source, cause=Cause.VMS_OWN_ALL)
    loudest = max(vectors, key=lambda v: v.counts.get(worst, 0), default=None)
    of = f", mostly {', '.join(loudest.names)}" if loudest and most else ""
    return judged(
        name,
        f"at most {WARN_ABOVE_PER_S} a second on a CPU of {format_cpus(dedicated)}",
        f"{most:.0f} a second on CPU {worst}{of}, {sum(rates.values()):.0f} on all",
        subject.interrupts.source,
        holds=most <= WARN_ABOVE_PER_S,
        otherwise=Level.FAILURE if most > FAIL_ABOVE_PER_S else Level.WARNING,
        remedy=_REMEDY.format(cpus=format_cpus(dedicated)),
    )


CHECK = Check(
    75, "hypervisor.irq_affinity", "Device interrupts stay off the CPUs of VMs", find
)
