# SPDX-License-Identifier: Apache-2.0
"""Scores of the hosts that may take a VM: the best is the one that loses least.

Nova spreads VMs by default.  Where a host may serve either kind of VM, one
unpinned VM on it takes all its slots, so that spreading a few of them leaves no
slot free; here VMs are packed instead.

A score is a whole number of points from -100 to 100.  0 is "no matter": no slot
is won or lost, and Nova's own weighers shall decide.  Scores that differ, differ
by a point or more, so that a multiplier can be chosen that outvotes them.
"""

from typing import Final

from nova_perfvm.facts import HostFacts, RequestFacts
from nova_perfvm.policy import Policy, VMClass, groups_of
from nova_perfvm.rules.classes import resolve_class
from nova_perfvm.rules.host.class_conflict import unpinned_vms
from nova_perfvm.rules.host.room import has_cell_for_itself
from nova_perfvm.rules.host.unreadable import fault
from nova_perfvm.rules.slots import cell_cpus, count_vms, host_mode, host_slots

FULL_SCALE: Final = 100

NEUTRAL: Final = 0
WORST: Final = -FULL_SCALE

# An unpinned VM.  A host whose slots others have taken already loses nothing
# now, but comes back later: the more VMs must leave, the less likely soon.
BROKEN: Final = -50
MOST_COMPANY: Final = 40
# A host that can still give its slots loses them, the fewer the better.
UNTOUCHED: Final = -75

# A pinned VM: first where its kind is, and there, and otherwise, first where
# no unpinned VM could come, then where the fewest slots are free.
OCCUPIED: Final = 50
EMPTY: Final = -50
RESERVED: Final = 25
MOST_SLOTS: Final = 20


def score(policy: Policy, request: RequestFacts, host: HostFacts) -> int:
    """Return how well a request that a host may take is placed there, in points.

    Only hosts that :func:`nova_perfvm.rules.decide` allows are worth comparing;
    the others get low scores, or 0 where the policy has no say.
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
    """Judge a host for a VM that shares CPUs by the slots it would take."""
    # With disjoint cpu sets the VM gets CPUs that no slot is made of.
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
    """Judge an open host by the number of slots that it can give when it is empty."""
    pins = [len(cell.pinned_cpus) for cell in host.cells if cell.pinned_cpus]
    if pins and max(pins) >= vm_class.least_cell_vcpus:
        return WORST
    # Fewer pins than one VM's share are of VMs that the policy does not know.
    strays = bool(pins) and vm_class.exclusive == "host"
    others, _ = unpinned_vms(vm_class, host)
    if others or strays:
        return BROKEN + min(others, MOST_COMPANY)
    return UNTOUCHED - min(slots, MOST_SLOTS)


def _score_pinned(
    policy: Policy, vm_class: VMClass, request: RequestFacts, host: HostFacts
) -> int:
    """Judge a host for a pinned VM by what it opens and what it fills up."""
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
    """Count the VMs like the requested one that still fit, page sizes aside."""
    memory_mb = max((cell.memory_mb for cell in request.cells), default=0)
    shares = []
    for cell in host.cells:
        free = cell_cpus(vm_class, cell)[1] // vm_class.cell_pcpus
        if memory_mb:
            free = min(free, (cell.memory_mb - cell.memory_usage_mb) // memory_mb)
        if vm_class.exclusive == "cell" and not has_cell_for_itself(
            vm_class, cell, mode
        ):
            free = 0
        shares.append(max(0, free))
    return groups_of(shares, vm_class.cells_per_vm)


def _serves_shared(policy: Policy, host: HostFacts) -> bool:
    """Return whether VMs of a class that shares CPUs may come to an open host."""
    if not host.labels:
        return True
    return any(not c.pinned for c in policy.classes if c.name in host.labels)
