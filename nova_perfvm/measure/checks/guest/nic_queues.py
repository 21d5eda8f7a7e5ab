# SPDX-License-Identifier: Apache-2.0
"""A network interface has a queue pair for each vCPU; XPS and RPS fit them."""

from collections import Counter

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.check import Findings, Seen, check, check_each, skipped
from nova_perfvm.measure.checks.guest.nic_vectors import FIX_SCRIPT, MULTIQUEUE
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.cpus import mask
from nova_perfvm.measure.observed.nics import MOST_OF_TAP, NET, NIC, Kind, queues_of


@check(20, "guest.nic_queues")
def nic_queues(guest: GuestSubject) -> Findings:
    """Each NIC has a queue pair for each vCPU, enabled."""
    for nic in guest.nics:
        yield _judged(guest, nic)


def _judged(guest: GuestSubject, nic: NIC) -> Finding:
    vcpus, vm_class = guest.vcpus, guest.vm_class
    if nic.kind is Kind.OTHER:
        return skipped(nic.name, f"no rule for the driver {nic.driver}")
    if vm_class is not None and not vm_class.vif_multiqueue:
        return skipped(nic.name, f"class {vm_class.name} promises no multiqueue")
    if nic.present is None:
        return skipped(nic.name, "the number of queues was not read")
    wanted, shown = min(vcpus, MOST_OF_TAP), f"{nic.present.number} present"
    if nic.kind is Kind.PASSED_THROUGH and nic.present.number < wanted:
        # The hardware grants this number of queues; no flavor changes it.
        wanted, shown = nic.present.number, f"{shown}, the limit of the device"
    few, sources = nic.present.number < wanted, {nic.present.source}
    if nic.enabled is not None:
        shown += f", {nic.enabled.number} enabled"
        sources.add(nic.enabled.source)
    elif not few:
        return skipped(nic.name, f"{shown}; the number enabled was not read")
    expected = f"{wanted} queue pairs for {vcpus} vCPUs, all enabled"
    source = "; ".join(sorted(sources))
    if not few and nic.enabled is not None and nic.enabled.number >= wanted:
        return Finding("", Level.OK, nic.name, shown, expected, source)
    enable = f"ethtool -L {nic.name} combined {wanted}; {FIX_SCRIPT}"
    remedy = MULTIQUEUE if few else enable
    return Finding("", Level.FAILURE, nic.name, shown, expected, source, remedy)


def _masks(
    guest: GuestSubject, nic: NIC, direction: str, name: str
) -> dict[int, frozenset[int]]:
    seen = guest.collected
    queues = queues_of(seen, nic.name, direction)
    paths = {queue: f"{path}/{name}" for queue, path in queues.items()}
    return {q: mask(seen, path) for q, path in paths.items() if path in seen.files}


@check_each(
    50,
    "guest.xps",
    lambda guest: guest.nics,
    source=f"{NET}/{{}}/queues/tx-*/xps_cpus",
    remedy=FIX_SCRIPT,
)
def xps(guest: GuestSubject, nic: NIC) -> Seen:
    """Each CPU sends over a queue of its own."""
    online, masks = guest.online, _masks(guest, nic, "tx", "xps_cpus")
    if len(masks) < 2:
        reason = "XPS masks were not read, or the NIC has a single queue"
        raise NotReadError(f"{NET}/{nic.name}/queues", reason)
    queues = Counter(cpu for cpus in masks.values() for cpu in cpus & online)
    none = online - set(queues)
    several = [cpu for cpu, count in queues.items() if count > 1]
    used = sum(bool(cpus & online) for cpus in masks.values())
    if used < (wanted := min(len(masks), len(online))):
        yield Level.WARNING, f"{len(online)} CPUs send over {used} of {wanted} queues"
    elif not none and not several:
        yield Level.OK, f"{len(online)} CPUs send over one of {len(masks)} queues"
    # The kernel then picks a queue by hash: CPUs contend for the queue's lock, and the
    # queue's interrupts go to another CPU.
    for words, cpus in (("no queue", none), ("several queues", several)):
        if cpus:
            yield Level.WARNING, f"CPUs {format_cpus(cpus)} have {words}"


@check_each(
    55,
    "guest.rps",
    lambda guest: guest.nics,
    source=f"{NET}/{{}}/queues/rx-*/rps_cpus",
    remedy=f"for f in {NET}/{{}}/queues/rx-*/rps_cpus; do echo 0 > $f; done",
)
def rps(guest: GuestSubject, nic: NIC) -> Seen:
    """Packets stay on the CPU of their queue: RPS is off."""
    masks = _masks(guest, nic, "rx", "rps_cpus")
    if len(masks) < guest.vcpus:
        reason = "RPS masks were not read, or the NIC has fewer queues than CPUs"
        raise NotReadError(f"{NET}/{nic.name}/queues", reason)
    given = format_cpus(queue for queue, cpus in masks.items() if cpus)
    # RPS sends an interrupt to another CPU, though each CPU has a queue already.
    level = Level.WARNING if given else Level.OK
    yield level, f"on for queues {given or 'none'}"
