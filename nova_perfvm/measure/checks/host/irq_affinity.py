# SPDX-License-Identifier: Apache-2.0
"""Interrupts of devices stay off the CPUs that VMs own.

An interrupt with its softirq takes about 10 us: 1,000 a second are 1 % of a CPU, the
limit of ``guest.steal``; 10 a second are too few to measure.  On a host whose CPUs all
belong to VMs interrupts cannot avoid them; ``hypervisor.host_time`` judges the cost.
"""

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Cause, Seen, check_of, each_of
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import cpus, interrupts
from nova_perfvm.measure.observed.interrupts import Interrupts, Vector

WARN_ABOVE_PER_S = 10
FAIL_ABOVE_PER_S = 1000
# Passed-through devices interrupt on behalf of their own VM.
_OF_GUESTS = "vfio"


@check_of(
    75,
    "hypervisor.irq_affinity",
    title=f"Devices interrupt a CPU of VMs {WARN_ABOVE_PER_S} times a second at most",
    source=f"{interrupts.PATH}, /proc/irq/*/effective_affinity_list",
    remedy="stop irqbalance, or give it the CPUs of VMs by IRQBALANCE_BANNED_CPULIST=; "
    "move them: echo CPUs > /proc/irq/N/smp_affinity_list, or boot with "
    "isolcpus=managed_irq,CPUs for those that the kernel manages",
)
def irq_affinity(host: HostSubject) -> Seen:
    """Compare allowed CPUs and actual CPUs of interrupts with CPUs that VMs own."""
    if host.cpu_sets.dedicated:
        yield from each_of((_affinity, _fired), host)


def _devices(seen: Interrupts) -> list[Vector]:
    """Return the vectors that fired, without those of passed-through devices.

    Drivers allocate a vector for each CPU; silent vectors disturb no VM.
    """
    return [
        vector
        for vector in seen.vectors
        if vector.total and not any(n.startswith(_OF_GUESTS) for n in vector.names)
    ]


def _affinity(host: HostSubject) -> Seen:
    dedicated, text = host.cpu_sets.dedicated, host.collected.text(interrupts.PATH)
    if not host.online - dedicated:
        yield Cause.FACTS_MISSING, "VMs own every CPU, so interrupts are on theirs"
        return
    fired = _devices(interrupts.parse(text))
    where = [(v, cpus.of_interrupt(host.collected, v.irq)) for v in fired]
    seen = [(vector, allowed) for vector, allowed in where if allowed]
    if not seen:
        path = "/proc/irq/*/effective_affinity_list"
        raise NotReadError(path, "it was not collected")
    yield Level.OK, f"{len(seen)} interrupts have fired"
    for vector, allowed in seen:
        if met := allowed & dedicated:
            shown = f"interrupt {vector.irq} ({', '.join(vector.names)})"
            yield Level.WARNING, f"{shown} may fire on CPUs {format_cpus(met)}"


def _fired(host: HostSubject) -> Seen:
    host.collected.looks(interrupts.PATH)
    vectors = _devices(interrupts.read(host.collected))
    seconds = host.collected.interval_s
    if not seconds or not vectors:
        reason = "no device interrupted between the two looks: that tells nothing"
        raise NotReadError(interrupts.PATH, reason)
    counts, dedicated = interrupts.by_cpu(vectors), host.cpu_sets.dedicated
    rates = {cpu: counts[cpu] / seconds for cpu in dedicated}
    worst, most = max(rates.items(), key=lambda item: item[1])
    shown = f"{most:.0f} a second on CPU {worst}"
    if not host.online - dedicated:
        reason = f"{shown}, and VMs own every CPU: hypervisor.host_time has their cost"
        yield Cause.FACTS_MISSING, reason
        return
    loudest = max(vectors, key=lambda vector: vector.counts.get(worst, 0))
    level = Level.FAILURE if most > FAIL_ABOVE_PER_S else Level.WARNING
    yield (
        level if most > WARN_ABOVE_PER_S else Level.OK,
        f"{shown}, mostly {', '.join(loudest.names)}, {sum(rates.values()):.0f} on all",
    )
