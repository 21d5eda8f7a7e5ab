# SPDX-License-Identifier: Apache-2.0
"""Score the hosts for a VM: the best host loses the fewest slots.

Nova spreads VMs by default.  On a host that may serve pinned and unpinned VMs, one
unpinned VM takes all slots, so spreading a few unpinned VMs leaves no slot free;
these scores pack VMs instead.

A score is an integer from -100 to 100.  0 means that no slot is won or lost: Nova's
own weighers decide.  Unequal scores differ by at least a point, so that an operator
can choose a multiplier that outvotes the other weighers.
"""

from typing import Final

from nova_perfvm.facts import HostFacts, RequestFacts
from nova_perfvm.policy import Policy, VMClass, groups_of
from nova_perfvm.rules.classes import resolve_class
from nova_perfvm.rules.host.class_conflict import unpinned_vms
from nova_perfvm.rules.host.room import has_cell_for_itself
from nova_perfvm.rules.host.unreadable import fault
from nova_perfvm.rules.slots import (
    cell_cpus,
    cell_takes,
    count_vms,
    host_mode,
    host_slots,
)

FULL_SCALE: Final = 100

NEUTRAL: Final = 0
WORST: Final = -FULL_SCALE

# For an unpinned VM: a host whose slots unpinned VMs already block loses none now.  The
# more VMs block it, the higher its score, as it will not become empty soon.
BROKEN: Final = -50
MOST_COMPANY: Final = 40
# For an unpinned VM: a host with free slots loses them; fewer slots score higher.
UNTOUCHED: Final = -75

# For a pinned VM: hosts with VMs of its class before hosts without; among equals,
# hosts closed to unpinned VMs first, then hosts with the fewest free slots.
OCCUPIED: Final = 50
EMPTY: Final = -50
RESERVED: Final = 25
MOST_SLOTS: Final = 20


def score(policy: Policy, request: RequestFacts, host: HostFacts) -> int:
    """Return the score of a host for a request, from -100 to 100; the highest wins.

    Compare only hosts that :func:`nova_perfvm.rules.decide` allows.  0 for a host that
    the policy does not manage, and for a request without a class.
    """
    vm_class = resolve_class(policy, request)
    if vm_class is None or not policy.manages(host.labels):
        return NEUTRAL
    if fault(host):
        return WORST
    if vm_class.pinned:
        return _score_pinned(policy, vm_class.of_size(request.vcpus), request, host)
    return _score_shared(policy, host)


def _score_shared(policy: Policy, host: HostFacts) -> int:
    """Score a host for a VM that shares CPUs by the slots that the VM would block."""
    # On a host with disjoint cpu sets, slots consist of dedicated CPUs only.
    if host_mode(host) != "open":
        return NEUTRAL
    points = NEUTRAL
    for vm_class in policy.pinned_classes:
        if vm_class.exclusive == "none":
            continue
        if host.labels and vm_class.name not in host.labels:
            continue
        slots = host_slots(vm_class, host.cells)
        if slots:
            points = min(points, _cost(vm_class, host, slots))
    return points


def _cost(vm_class: VMClass, host: HostFacts, slots: int) -> int:
    """Score an open host for an unpinned VM by what one exclusive class would lose.

    The score is ``WORST`` if the pins may be a VM of the class; ``BROKEN`` or more if
    other VMs block the class's slots already; ``UNTOUCHED`` or less if no VM does.

    :param slots: slots of the class on the host when it is empty
    """
    pins = [len(cell.pinned_cpus) for cell in host.cells if cell.pinned_cpus]
    if pins and max(pins) >= vm_class.least_cell_vcpus:
        return WORST
    # Too few for a VM of the class: VMs without a class own these pins.
    strays = bool(pins) and vm_class.exclusive == "host"
    others, _ = unpinned_vms(vm_class, host)
    if others or strays:
        return BROKEN + min(others, MOST_COMPANY)
    return UNTOUCHED - min(slots, MOST_SLOTS)


def _score_pinned(
    policy: Policy, vm_class: VMClass, request: RequestFacts, host: HostFacts
) -> int:
    """Score a host for a pinned VM; ``WORST`` without a free slot.

    Hosts with VMs of the class score highest, then closed hosts, then those with the
    fewest free slots: see ``OCCUPIED``.
    """
    mode = host_mode(host)
    mine = count_vms(vm_class, host).least
    free = _free_slots(vm_class, request, host, mode)
    if vm_class.max_per_host is not None:
        free = min(free, vm_class.max_per_host - mine)
    if free <= 0:
        return WORST
    points = OCCUPIED if mine else EMPTY
    if mode != "open" or not _serves_shared(policy, host):
        points += RESERVED
    return points - min(free, MOST_SLOTS)


def _free_slots(
    vm_class: VMClass, request: RequestFacts, host: HostFacts, mode: str
) -> int:
    """Count the VMs like the requested one that still fit, whatever the page size."""
    memory_mb = max((cell.memory_mb for cell in request.cells), default=0)
    shares = []
    for cell in host.cells:
        free = cell_cpus(vm_class, cell)[1] // cell_takes(vm_class, cell)
        if memory_mb:
            free = min(free, (cell.memory_mb - cell.memory_usage_mb) // memory_mb)
        if vm_class.exclusive == "cell" and not has_cell_for_itself(
            vm_class, cell, mode
        ):
            free = 0
        shares.append(max(0, free))
    return groups_of(shares, vm_class.cells_per_vm)


def _serves_shared(policy: Policy, host: HostFacts) -> bool:
    """Return whether a host has no labels, or the label of a class that shares CPUs."""
    if not host.labels:
        return True
    return any(not c.pinned for c in policy.classes if c.name in host.labels)
