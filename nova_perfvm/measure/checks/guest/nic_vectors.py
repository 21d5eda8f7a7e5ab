# SPDX-License-Identifier: Apache-2.0
"""Each queue of a network interface interrupts a CPU of its own."""

from collections.abc import Iterator

from nova_perfvm.findings import Finding
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, failed, judged, skipped
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.vectors import (
    FIX_SCRIPT,
    Direction,
    directions,
    fair,
    most_on_one_cpu,
    place,
)
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.nics import NIC, Kind

# What virtio-pci falls back to if there are too few MSI-X vectors: one for all
# queues, or the line of a PCI device.
_SHARED = r"(?:{0}-virtqueues|{0})"


def find(subject: GuestSubject) -> Iterator[Finding]:
    """Judge each direction of each network interface."""
    for nic in subject.nics:
        try:
            yield from _of_nic(subject, nic)
        except NotReadError as exc:
            yield skipped(nic.name, exc.reason, exc.place)


def _of_nic(subject: GuestSubject, nic: NIC) -> Iterator[Finding]:
    seen = subject.interrupts
    if subject.vcpus == 1:
        source = subject.online.source
        yield skipped(nic.name, "the guest has one CPU", source, cause=Cause.ONE_CPU)
        return
    if (
        nic.kind is Kind.VIRTIO
        and nic.device
        and seen.named(_SHARED.format(nic.device))
    ):
        yield failed(
            nic.name,
            "a vector for each queue",
            "one vector for all queues",
            seen.source,
            "give the server fewer network interfaces or queues: each takes two "
            "vectors for each queue, and a guest has some 200 of them for each CPU",
        )
        return
    if nic.used == 1:
        reason = "it has one queue: guest.nic_queues says what to do"
        yield skipped(nic.name, reason, seen.source, cause=Cause.ONE_QUEUE)
        return
    found = directions(subject, nic)
    if not found:
        yield skipped(nic.name, "it has no vectors for its queues", seen.source)
    for direction in found:
        yield _of_direction(subject, direction)


def _of_direction(subject: GuestSubject, direction: Direction) -> Finding:
    places = [place(subject, vector) for vector in direction.vectors]
    known = [one for one in places if one]
    most, allowed = most_on_one_cpu(places), fair(len(places), subject.vcpus)
    cpus = len({one.cpu for one in known})
    if most <= allowed and len(known) < len(places):
        return skipped(
            direction.subject,
            f"of {len(places) - len(known)} of {len(places)} vectors nothing tells "
            "the CPU",
            "/proc/irq/*/effective_affinity_list",
        )
    return judged(
        direction.subject,
        f"at most {allowed} of {len(places)} vectors on a CPU",
        f"{len(places)} vectors on {cpus} CPUs, {most} on the busiest",
        "; ".join(sorted({one.source for one in known})),
        holds=most <= allowed,
        remedy=f"{FIX_SCRIPT}; stop irqbalance, which moves them together again",
    )


CHECK = Check(
    30, "guest.nic_vectors", "Each queue of a NIC interrupts a CPU of its own", find
)
