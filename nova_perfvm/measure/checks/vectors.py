# SPDX-License-Identifier: Apache-2.0
"""Which vectors a network interface has for each direction, and on which CPUs.

Several checks of guests ask for it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.collect.collected import NotReadError
from nova_perfvm.measure.observed.interrupts import Vector
from nova_perfvm.measure.observed.nics import NET, NIC, Kind

# Resizing replaces the copy of the flavor that a server was created with; nothing
# else does.
MULTIQUEUE: Final = (
    "resize the server to a flavor with hw:vif_multiqueue_enabled=true: openstack "
    "server resize --flavor FLAVOR SERVER; if its flavor or image turned multiqueue "
    "on when it was created: openstack server reboot --hard SERVER, and see that "
    "[libvirt]max_queues of the host's nova.conf does not limit it"
)
FIX_SCRIPT: Final = "run what nova-perfvm guest check --fix-script prints, in the guest"

# Names of vectors that are a queue's, as mlx5_comp3, iavf-eth0-TxRx-3,
# eth0-Tx-Rx-3 (ena): others are for events of the device.
_QUEUE: Final = re.compile(r"tx-?rx|comp\d|[-_](?:rx|tx|input|output|fp|queue)[-_]?\d")
# A CPU on which so many of a vector's interrupts were handled is where it is.
_NEARLY_ALL: Final = 0.9


class Direction(NamedTuple):
    """The vectors of the queues that a network interface uses in one direction.

    :ivar name: ``input``, ``output``, or both where one vector serves both
    """

    nic: NIC
    name: str
    vectors: tuple[Vector, ...]

    @property
    def subject(self) -> str:
        """Name it."""
        return f"{self.nic.name} {self.name}"


class VectorCPU(NamedTuple):
    """Where a vector is handled, and how that is known."""

    cpu: int
    source: str


def directions(subject: GuestSubject, nic: NIC) -> list[Direction]:
    """Return the directions of a network interface that have vectors.

    :raises NotReadError: when its vectors cannot be told from others
    """
    seen = subject.interrupts
    if nic.kind is Kind.VIRTIO and not nic.device:
        raise NotReadError(
            f"{NET}/{nic.name}/device", "which vectors it has is unknown"
        )
    if nic.kind is Kind.VIRTIO:
        named = {
            name: seen.named(rf"{nic.device}-{name}\.(\d+)")
            for name in ("input", "output")
        }
    elif nic.kind is Kind.PASSED_THROUGH:
        named = {"input+output": _of_device(subject, nic)}
    else:
        raise NotReadError(seen.source, f"the vectors of {nic.driver} are not known")
    used = nic.used
    return [
        Direction(nic, name, tuple(vectors.values())[:used])
        for name, vectors in named.items()
        if vectors
    ]


def _of_device(subject: GuestSubject, nic: NIC) -> dict[int, Vector]:
    listed = subject.collected.text(f"{NET}/{nic.name}/device/msi_irqs").split()
    return {
        vector.irq: vector
        for vector in subject.interrupts.vectors
        if str(vector.irq) in listed
        and any(_QUEUE.search(name.lower()) for name in vector.names)
    }


def place(subject: GuestSubject, vector: Vector) -> VectorCPU | None:
    """Return the CPU that handles a vector; None if nothing tells.

    The kernel says which CPU it has chosen, kernels before 4.15 only from which
    ones; then it is that which handled nearly all.
    """
    for name in ("effective_affinity_list", "smp_affinity_list"):
        path = f"/proc/irq/{vector.irq}/{name}"
        try:
            cpus = cpuset.parse(subject.collected.files.get(path, "").strip())
        except CPUSetError:
            continue
        if len(cpus) == 1:
            return VectorCPU(next(iter(cpus)), f"/proc/irq/*/{name}")
    if not vector.total:
        return None
    cpu, most = max(vector.counts.items(), key=lambda item: item[1])
    if most < _NEARLY_ALL * vector.total:
        return None
    return VectorCPU(cpu, subject.interrupts.source)


def most_on_one_cpu(places: list[VectorCPU | None]) -> int:
    """Return how many of some vectors the busiest CPU handles, of those known."""
    return max(Counter(p.cpu for p in places if p).values(), default=0)


def fair(queues: int, cpus: int) -> int:
    """Return how many vectors a CPU handles if they are dealt out evenly."""
    return -(-queues // cpus)


def well_placed(subject: GuestSubject, direction: Direction) -> bool:
    """Return whether nothing is wrong with queues and vectors of a direction.

    Then it is the traffic that is not spread.
    """
    nic = direction.nic
    wanted = min(subject.vcpus, nic.present.number if nic.present else subject.vcpus)
    if (nic.used or 0) < wanted or len(direction.vectors) < wanted:
        return False
    places = [place(subject, vector) for vector in direction.vectors]
    return most_on_one_cpu(places) <= fair(len(places), subject.vcpus)
