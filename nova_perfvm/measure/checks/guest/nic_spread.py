# SPDX-License-Identifier: Apache-2.0
"""A network interface's interrupts are spread as its connections allow.

Not against the queues: a few connections cannot use many of them.  And not against
the mean: 16 connections over 20 queues have 11.2 queues busy on average, of which
some have several and so more to do, and one connection is bigger than another; a
guest of 20 queues without a fault measured 6.62 effective CPUs.  So what one guest
without a fault in a hundred falls below is the limit
(:func:`~nova_perfvm.measure.checks.spread.least_effective`).

Whoever is below it and has queues and vectors as they should be has traffic that
cannot be spread, such as many idle connections and a busy one, or a host that hashes
badly: that is a warning.  With a fault of queues or vectors it is a failure.
"""

from collections.abc import Iterator

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks.cause import Cause
from nova_perfvm.measure.checks.check import Check, failed, judged, skipped
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.spread import busy_queues, least_effective
from nova_perfvm.measure.checks.vectors import (
    FIX_SCRIPT,
    MULTIQUEUE,
    Direction,
    directions,
    well_placed,
)
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.flows import Flows
from nova_perfvm.measure.observed.interrupts import by_cpu, effective
from nova_perfvm.printable import number_of

# The share of a CPU is then known to about 3 % (one over the root of it).
LEAST_INTERRUPTS = 1000
# All interrupts on one CPU are 1.0 effective CPUs, or some more if the vector moved
# in between: a limit below that tells nothing.
_TELLING = 1.5


def find(subject: GuestSubject) -> Iterator[Finding]:
    """Judge each direction of each network interface."""
    for nic in subject.nics:
        try:
            found = directions(subject, nic)
        except NotReadError as exc:
            yield skipped(nic.name, exc.reason, exc.place)
            continue
        if not found:
            yield skipped(nic.name, "it has no vectors for its queues")
        for direction in found:
            yield _of_direction(subject, direction)


def _of_direction(subject: GuestSubject, direction: Direction) -> Finding:
    name, source = direction.subject, subject.interrupts.source
    fired = by_cpu(direction.vectors)
    total, queues = sum(fired.values()), len(direction.vectors)
    if total < LEAST_INTERRUPTS:
        reason = f"{total} interrupts are too few: put it under load, 1000 are enough"
        return skipped(name, reason, source, cause=Cause.TOO_FEW_INTERRUPTS)
    if subject.vcpus == 1:
        source = subject.online.source
        return skipped(name, "the guest has one CPU", source, cause=Cause.ONE_CPU)
    spread = effective(fired.values())
    of = number_of(queues, "queue")
    observed = f"{spread:.2f} effective CPUs, {total} interrupts of {of}"
    if queues == 1:
        # However many connections there are.
        return _one_queue(subject, direction, observed)
    try:
        flows = subject.flows
    except NotReadError as exc:
        return skipped(name, f"{observed}; connections: {exc.reason}", exc.place)
    return _compared(subject, direction, flows, spread, observed)


def _compared(
    subject: GuestSubject,
    direction: Direction,
    flows: Flows,
    spread: float,
    observed: str,
) -> Finding:
    name, queues = direction.subject, len(direction.vectors)
    source = f"{subject.interrupts.source}; {flows.source}"
    least = least_effective(flows.number, queues)
    if least < _TELLING:
        reason = f"{number_of(flows.number, 'connection')} cannot tell"
        return skipped(name, f"{observed}; {reason}", source)
    holds = spread >= least
    if not holds and sum(nic.up for nic in subject.nics) > 1:
        reason = f"which of {flows.number} connections use this NIC is not known"
        return skipped(name, f"{observed}; {reason}", source)
    sound = well_placed(subject, direction)
    return judged(
        name,
        f"at least {least:.2f} effective CPUs with {flows.number} connections "
        f"({busy_queues(flows.number, queues):.1f} busy queues on average)",
        observed,
        source,
        holds=holds,
        otherwise=Level.WARNING if sound else Level.FAILURE,
        remedy="queues and vectors are as they should be: see which connections are "
        "busy (ss -ti), and let the program use more of them"
        if sound
        else f"{FIX_SCRIPT}; guest.nic_queues and guest.nic_vectors say more",
    )


def _one_queue(subject: GuestSubject, direction: Direction, observed: str) -> Finding:
    nic, vm_class = direction.nic, subject.vm_class
    if vm_class is not None and not vm_class.vif_multiqueue:
        reason = f"class {vm_class.name} promises no multiqueue"
        return skipped(
            direction.subject, f"{observed}; {reason}", cause=Cause.NO_MULTIQUEUE
        )
    remedy = MULTIQUEUE
    if nic.present is not None and nic.present.number > 1:
        wanted = min(nic.present.number, subject.vcpus)
        remedy = f"ethtool -L {nic.name} combined {wanted}; {FIX_SCRIPT}"
    return failed(
        direction.subject,
        f"interrupts on more CPUs than that of one queue, of {subject.vcpus}",
        observed,
        subject.interrupts.source,
        remedy,
    )


CHECK = Check(
    40, "guest.nic_spread", "Interrupts of NICs are spread as connections allow", find
)
