# SPDX-License-Identifier: Apache-2.0
"""Determine the number of high-performance VMs that an elastic host should take."""

from dataclasses import replace

from nova_perfvm import constants as const
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.policy import Elastic, HostShape, Policy, largest_slots


class SlotsError(PerfVMError):
    """A forbidden number of slots, or a number that cannot be determined."""


def slots_to_enroll(policy: Policy, view: HostView, asked: int | None = None) -> int:
    """Return the number of slots of a host, from the first source that tells it.

    1. The number that the operator asked for.
    2. The host's children: all are present, or the host was enrolled with another
       number of children and with slots that an operator chose.
    3. The shape that Nova shows, if it explains the number of CPUs.
    4. A host_shape of the policy with as many CPUs.

    No API shows cpu sets, so an operator may have to name the number.

    :raises SlotsError: when the number asked for is more than the policy gives any
        host, or when no source tells the number
    """
    scheme = host_scheme_of(policy)
    if not scheme.by_slots:
        if asked is not None:
            raise SlotsError(f"under placement: {policy.placement} hosts have no slots")
        return 0
    most = scheme.most_slots(policy)
    if asked is not None:
        if not 0 <= asked <= most:
            raise SlotsError(
                f"{asked} slots: the policy gives a host 0 to {most}; change its "
                "host_shape, max_per_host or elastic: slots first (openstack perfvm "
                "policy diff says what that costs)"
            )
        return asked
    present = enrolled_slots(policy, view)
    if present is None:
        present = _slots_chosen(policy, view)
    return _slots_by_shape(policy, view) if present is None else present


def enrolled_slots(policy: Policy, view: HostView) -> int | None:
    """Return the number of slots by a host's children; None unless all are right."""
    found = {provider.name: provider for provider in view.children}
    scheme = host_scheme_of(policy)
    for slots in range(scheme.most_slots(policy) + 1):
        children = scheme.children(policy, view, slots)
        if found.keys() == {child.name for child in children} and all(
            dict(found[child.name].inventories) == child.inventories
            and child.trait in found[child.name].traits
            for child in children
        ):
            return slots
    return None


def _slots_chosen(policy: Policy, view: HostView) -> int | None:
    """Return the slots that an operator chose for a host; None if none were chosen.

    The host's children tell, even if the policy has another number of children by now.
    Slots that follow from the host's shape count as not chosen: they are computed
    again.
    """
    children = sorted(view.children, key=lambda provider: provider.name)
    slots = sum(child.gives_all_units for child in children)
    found = [i for c in children if (i := c.inventories.get(const.RC_UNIT))]
    if not found or any(
        inventory.max_unit != inventory.total - (index >= slots)
        for index, inventory in enumerate(found)
    ):
        return None
    try:
        if slots == _slots_by_shape(replace(policy, elastic=Elastic(len(found))), view):
            return None
    except SlotsError:
        pass
    return min(slots, host_scheme_of(policy).most_slots(policy))


def as_enrolled(policy: Policy, view: HostView) -> Policy:
    """Return the policy with the number of children that a host was enrolled with.

    The host's present children must be judged by this number, not by the new policy's.
    """
    return host_scheme_of(policy).as_enrolled(policy, view.root.elastic_traits)


def _slots_by_shape(policy: Policy, view: HostView) -> int:
    mode = view.root.mode
    name = const.VCPU if mode == "open" else const.PCPU
    cpus = view.root.total(name)
    if mode == "mixed":
        raise SlotsError(
            f"{view.host} has both PCPU and VCPU, and VMs of both kinds would meet "
            "on it: remove its cpu sets, or say --slots 0 for general VMs only"
        )
    shapes = [view.compute.shape] if view.compute.shape else []
    if not any(cpus in _totals(policy, shape) for shape in shapes):
        shapes = [s for s in policy.host_shapes if cpus in _totals(policy, s)]
    most = host_scheme_of(policy).most_slots(policy)
    slots = {
        min(most, largest_slots(policy.pinned_classes, (shape,))) for shape in shapes
    }
    if len(slots) != 1:
        which = "several shapes" if slots else "no shape"
        raise SlotsError(
            f"{view.host} shows {cpus} {name}, as {which} of the policy's host_shape "
            "would: say --slots N, the high-performance VMs that fit its NUMA nodes (0 "
            "for a host of general VMs only)"
        )
    return slots.pop()


def _totals(policy: Policy, shape: HostShape) -> set[int]:
    """Return the numbers of CPUs that a host of a shape may show.

    With ``smt: cores`` the cpu sets of a host may contain one thread of each core.
    """
    totals = {shape.cpus}
    if any(vm_class.smt == "cores" for vm_class in policy.pinned_classes):
        totals.add(shape.cells * shape.cores)
    return totals
