# SPDX-License-Identifier: Apache-2.0
"""Queues of a network interface interrupt a CPU each, spread as connections allow.

The limit is neither the number of queues, as few connections cannot use many queues,
nor the mean: 16 connections keep 11.2 of 20 queues busy on average, and connections
differ in size; a faultless guest with 20 queues measured 6.62 effective CPUs.  The
limit is the first percentile of simulated faultless guests
(:func:`~nova_perfvm.measure.checks.spread.least_effective`).

Below the limit, correct queues and vectors mean traffic that cannot be spread (one
busy connection among idle ones) or poor hashing on the host: a warning.  With faulty
queues or vectors it is a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import Final, NamedTuple

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import (
    Cause,
    Findings,
    Seen,
    check,
    findings_of,
    tried,
)
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.checks.spread import least_effective
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed import cpus, interrupts
from nova_perfvm.measure.observed.interrupts import Vector, by_cpu, effective
from nova_perfvm.measure.observed.nics import NET, NIC, Kind
from nova_perfvm.printable import number_of

# Resizing replaces the copy of the flavor that a server was created with; nothing
# else does.
MULTIQUEUE: Final = (
    "resize the server to a flavor with hw:vif_multiqueue_enabled=true; if it has one, "
    "openstack server reboot --hard SERVER, and see that [libvirt]max_queues of the "
    "host's nova.conf does not limit it"
)
FIX_SCRIPT: Final = "run what nova-perfvm guest check --fix-script prints, in the guest"

# Names of queue vectors: mlx5_comp3, iavf-eth0-TxRx-3, eth0-Tx-Rx-3 (ena).  Other
# vectors report events of the device.
_QUEUE: Final = re.compile(r"tx-?rx|comp\d|[-_](?:rx|tx|input|output|fp|queue)[-_]?\d")
# The share of a vector's interrupts that identifies the CPU handling the vector.
_NEARLY_ALL: Final = 0.9
# With too few MSI-X vectors virtio-pci falls back to one vector for all queues, or to
# the interrupt line of the PCI device.
_SHARED = r"(?:{0}-virtqueues|{0})"
# 1000 interrupts give the share of a CPU to about 3 % (1 / sqrt(1000)).
LEAST_INTERRUPTS = 1000
# All interrupts on one CPU are 1.0 effective CPUs, somewhat more if the vector moved
# between the looks: a lower limit cannot tell one CPU from several.
_TELLING = 1.5
_AFFINITY: Final = "/proc/irq/*/effective_affinity_list"
_SOUND = (
    "queues and vectors are as they should be: see which connections are busy "
    "(ss -ti), and let the program use more of them"
)


class Direction(NamedTuple):
    """The vectors of the queues that a network interface uses in one direction.

    :ivar name: ``input``, ``output``, or both where one vector serves both
    """

    nic: NIC
    name: str
    vectors: tuple[Vector, ...]

    @property
    def subject(self) -> str:
        """Interface and direction, such as ``eth0 input``."""
        return f"{self.nic.name} {self.name}"


def _directions(guest: GuestSubject, nic: NIC) -> list[Direction]:
    """Return a virtio NIC's input and output, or a passed-through NIC's one direction.

    :raises NotReadError: when /proc/interrupts shows no vectors of the NIC's queues, or
        the driver's vectors are not known
    """
    seen, ways = guest.interrupts, ("input", "output")
    if nic.kind is Kind.VIRTIO and nic.device:
        named = {way: seen.named(rf"{nic.device}-{way}\.(\d+)") for way in ways}
    elif nic.kind is Kind.PASSED_THROUGH:
        named = {"input+output": _queue_vectors(guest, nic)}
    else:
        raise NotReadError(seen.source, f"the vectors of {nic.driver} are not known")
    found = [
        Direction(nic, way, tuple(vectors.values())[: nic.used])
        for way, vectors in named.items()
        if vectors
    ]
    if not found:
        raise NotReadError(seen.source, "no vectors for the NIC's queues")
    return found


def _queue_vectors(guest: GuestSubject, nic: NIC) -> dict[int, Vector]:
    """Return the vectors of a passed-through NIC's queues, by IRQ."""
    listed = guest.collected.text(f"{NET}/{nic.name}/device/msi_irqs").split()
    return {
        vector.irq: vector
        for vector in guest.interrupts.vectors
        if str(vector.irq) in listed
        and any(_QUEUE.search(name.lower()) for name in vector.names)
    }


def _place(guest: GuestSubject, vector: Vector) -> int | None:
    """Return the CPU that handles a vector; None if unknown.

    Where the kernel names several CPUs, take the CPU that handled nearly all of the
    vector's interrupts: vectors fire a few times on another CPU while drivers start.
    """
    found = cpus.of_interrupt(guest.collected, vector.irq)
    if len(found) == 1:
        return min(found)
    cpu, most = max(vector.counts.items(), key=lambda item: item[1])
    least = max(LEAST_INTERRUPTS, _NEARLY_ALL * vector.total)
    return cpu if most >= least else None


class _Places(NamedTuple):
    """Where the vectors of a direction are handled.

    :ivar cpus: number of CPUs that handle vectors
    :ivar known: number of vectors whose CPU is known
    :ivar most: number of vectors on the busiest CPU
    :ivar fair: vectors per CPU in an even distribution, rounded up
    """

    cpus: int
    known: int
    most: int
    fair: int


def _places(guest: GuestSubject, direction: Direction) -> _Places:
    places = (_place(guest, vector) for vector in direction.vectors)
    known = Counter(cpu for cpu in places if cpu is not None)
    fair = -(-len(direction.vectors) // guest.vcpus)
    return _Places(len(known), known.total(), max(known.values(), default=0), fair)


def _well_placed(guest: GuestSubject, direction: Direction) -> bool:
    """Return whether queues and vectors of a direction are free of faults.

    A poor spread is then due to the traffic.
    """
    nic, found = direction.nic, _places(guest, direction)
    wanted = min(guest.vcpus, nic.present.number if nic.present else guest.vcpus)
    enough = min(nic.used or 0, len(direction.vectors)) >= wanted
    return enough and found.most <= found.fair


@check(30, "guest.nic_vectors")
def nic_vectors(guest: GuestSubject) -> Findings:
    """Each queue of a NIC interrupts a CPU of its own."""
    for nic in guest.nics:
        yield from tried(nic.name, _vectors_of_nic, guest, nic)


def _vectors_of_nic(guest: GuestSubject, nic: NIC) -> Findings:
    look = partial(
        findings_of,
        expected=nic_vectors.title,
        source=f"{interrupts.PATH}, {_AFFINITY}",
        remedy=f"{FIX_SCRIPT}; stop irqbalance, which moves them together again; with "
        "one vector for all queues give the server fewer NICs or queues: a guest has "
        "some 200 vectors for each CPU, and a queue takes two",
    )
    if whole := list(_nothing_to_compare(guest, nic)):
        yield from look(nic.name, iter(whole))
        return
    for direction in _directions(guest, nic):
        yield from look(direction.subject, _of_vectors(guest, direction))


def _nothing_to_compare(guest: GuestSubject, nic: NIC) -> Seen:
    """Yield the reason why a NIC has no vectors to compare, if any."""
    seen, device = guest.interrupts, nic.device
    if guest.vcpus == 1:
        yield Cause.NOTHING_TO_JUDGE, "the guest has one CPU"
    elif nic.kind is Kind.VIRTIO and device and seen.named(_SHARED.format(device)):
        yield Level.FAILURE, "one vector for all queues"
    elif nic.used == 1:
        yield Cause.NOTHING_TO_JUDGE, "the NIC has one queue: see guest.nic_queues"


def _of_vectors(guest: GuestSubject, direction: Direction) -> Seen:
    found, number = _places(guest, direction), len(direction.vectors)
    if found.most <= found.fair and found.known < number:
        reason = (
            f"the CPU of {number - found.known} of {number} vectors is unknown: they "
            f"fired less than {LEAST_INTERRUPTS} times, or on several CPUs"
        )
        raise NotReadError(_AFFINITY, reason)
    shown = f"{number} vectors on {found.cpus} CPUs"
    level = Level.OK if found.most <= found.fair else Level.FAILURE
    yield level, f"{shown}, {found.most} on the busiest, {found.fair} allowed"


@check(40, "guest.nic_spread")
def nic_spread(guest: GuestSubject) -> Findings:
    """Interrupts of NICs are spread as connections allow."""
    for nic in guest.nics:
        yield from tried(nic.name, _spread_of_nic, guest, nic)


def _spread_of_nic(guest: GuestSubject, nic: NIC) -> Findings:
    title, source = "spread as connections allow", guest.interrupts.source
    for direction in _directions(guest, nic):
        look, remedy = _of_spread(guest, direction), _spread_remedy(guest, direction)
        yield from findings_of(direction.subject, look, title, source, remedy)


def _of_spread(guest: GuestSubject, direction: Direction) -> Seen:
    source, vm_class = guest.interrupts.source, guest.vm_class
    fired, queues = by_cpu(direction.vectors), len(direction.vectors)
    total, spread = fired.total(), effective(fired.values())
    if total < LEAST_INTERRUPTS:
        reason = f"{total} interrupts are too few: put it under load, 1000 are enough"
        yield Cause.FACTS_MISSING, reason
        return
    if guest.vcpus == 1:
        yield Cause.NOTHING_TO_JUDGE, "the guest has one CPU"
        return
    of = f"{total} interrupts of {number_of(queues, 'queue')}"
    shown = f"{spread:.2f} effective CPUs, {of}"
    if queues == 1 and vm_class is not None and not vm_class.vif_multiqueue:
        reason = f"{shown}; class {vm_class.name} promises no multiqueue"
        yield Cause.NOTHING_TO_JUDGE, reason
        return
    if queues == 1:
        # One queue is a fault for any number of connections.
        yield Level.FAILURE, shown
        return
    least = least_effective(guest.flows, queues)
    shown = f"{shown}, {number_of(guest.flows, 'connection')}"
    if least < _TELLING:
        raise NotReadError(source, f"{shown} cannot tell")
    if spread < least and sum(nic.up for nic in guest.nics) > 1:
        raise NotReadError(source, f"{shown}: which use this NIC is not known")
    level = Level.WARNING if _well_placed(guest, direction) else Level.FAILURE
    yield Level.OK if spread >= least else level, f"{shown}, at least {least:.2f}"


def _spread_remedy(guest: GuestSubject, direction: Direction) -> str:
    nic = direction.nic
    present = nic.present.number if nic.present else 1
    if len(direction.vectors) > 1:
        return _SOUND if _well_placed(guest, direction) else FIX_SCRIPT
    enable = f"ethtool -L {nic.name} combined {min(present, guest.vcpus)}; {FIX_SCRIPT}"
    return enable if present > 1 else MULTIQUEUE
