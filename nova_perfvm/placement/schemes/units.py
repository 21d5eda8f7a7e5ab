# SPDX-License-Identifier: Apache-2.0
"""The scheme ``units``: elastic hosts, which serve one class at a time by Placement.

An inventory of the host's own provider cannot express "either two high-performance VMs
or any number of general VMs": if both extremes fit, so does a mixture.  Child providers
can.  Each host has m children with N units each; a high-performance VM takes all N
units of one child, a general VM one unit of every child.  So a general VM blocks
high-performance VMs, a high-performance VM blocks general VMs, and m high-performance
VMs fit.

A flavor serves the whole cloud, so every host has m children: as many as the largest
host of the policy has slots, or as ``elastic: {slots: m}`` declares for larger hosts to
come.  On a host with fewer slots, a surplus child has a max_unit of N - 1, so no VM can
take the whole child.

The scheme works only among VMs whose flavors agree on N and m, and a server keeps the
flavor of its creation.  So N is a constant, and the trait that flavors require names m.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason, RequestFacts
from nova_perfvm.facts.demand import Demand, Group
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Inventory, Provider, child_name
from nova_perfvm.placement.schemes.residents import Division, Holding, Resident
from nova_perfvm.placement.schemes.scheme import Child, HostOffer, Scheme
from nova_perfvm.placement.settings import (
    FALLBACK_QUERY,
    ISOLATED_AGGREGATES,
    PIN_SET,
    Setting,
)
from nova_perfvm.policy import Elastic, Policy, VMClass, largest_slots

SUFFIXES: Final = const.CHILD_LETTERS


class UnitsScheme(Scheme):
    """``placement: units``."""

    name = "units"
    summary = "hosts are elastic: child providers with units"
    modes = ("elastic", "dedicated", "shared")
    resource_class = const.RC_UNIT
    enrolled_modes = modes
    enrolled_prefix = const.TRAIT_ELASTIC
    by_slots = True
    noun = "units"

    def groups(
        self, policy: Policy, vm_class: VMClass, memory_mb: int
    ) -> Iterator[Group]:
        """Yield the groups of a VM's request.

        A pinned VM takes all units of one child, any other VM one unit of every child.
        """
        required = frozenset({self.enrolled_trait(policy)})
        if vm_class.pinned:
            # No suffix is needed, as one provider has to give the whole amount.  For
            # the unsuffixed group Placement drops full hosts first, which is faster.
            yield Group("", {const.RC_UNIT: const.UNITS_PER_CHILD}, required)
            return
        # Dedicated hosts in a pool of elastic hosts have the trait to avoid.
        yield Group("", {}, required, self.traits_to_avoid(policy))
        for suffix in SUFFIXES[: children_per_host(policy)]:
            yield Group(
                f"_perfvm_{suffix}",
                {const.RC_UNIT: 1},
                required=frozenset({child_trait(suffix)}),
            )

    def offers(
        self, policy: Policy, vm_class: VMClass | None, mode: str, slots: int
    ) -> HostOffer:
        """Return the trait that keeps general VMs off a dedicated host.

        Enrolling, not provider.yaml, adds the units.
        """
        if vm_class is None or mode != "dedicated":
            return HostOffer()
        return HostOffer(traits=frozenset({self.trait(policy, vm_class)}))

    def children(self, policy: Policy, view: HostView, slots: int) -> tuple[Child, ...]:
        """Return the m child providers of a host."""
        return children_named(policy, view.root.name, slots)

    def enrolled_trait(self, policy: Policy) -> str:
        """Return the trait of elastic hosts with m children, which flavors require."""
        return f"{const.TRAIT_ELASTIC}_{children_per_host(policy)}"

    def as_enrolled(self, policy: Policy, traits: Collection[str]) -> Policy:
        """Return the policy with the m under which a host was enrolled."""
        mine = [t for t in traits if t.startswith(self.enrolled_prefix)]
        if not mine or self.enrolled_trait(policy) in mine:
            return policy
        return replace(policy, elastic=Elastic(max(map(children_of, mine))))

    def most_slots(self, policy: Policy) -> int:
        """Return the most pinned VMs per host: m, capped at ``max_per_host``."""
        count = children_per_host(policy)
        return max((c.capped(count) for c in policy.pinned_classes), default=0)

    def usable_slots(self, policy: Policy, slots: int) -> int:
        """Return the number of a host's slots that VMs can take: one per child."""
        return min(slots, self.most_slots(policy))

    def inventory(self, policy: Policy, slots: Mapping[str, int]) -> dict[str, str]:
        """Return the trait and the units of an empty host, in words."""
        children = children_named(policy, "", max(slots.values(), default=0))
        units = (child.inventories[const.RC_UNIT] for child in children)
        return {
            "trait": self.enrolled_trait(policy),
            const.RC_UNIT: ", ".join(
                f"{found.total} (at most {found.max_unit} a VM)" for found in units
            ),
        }

    def slots_seen(self, tree: Sequence[Provider]) -> tuple[int, int] | None:
        """Return the number of children that a VM may take whole, and has taken."""
        if not any(const.RC_UNIT in provider.inventories for provider in tree):
            return None
        whole = [child for child in tree if child.gives_all_units]
        taken = [c for c in whole if c.total(const.RC_UNIT) in c.units().values()]
        return len(whole), len(taken)

    def capacity(self, view: HostView, demand: Demand, slots: int) -> int:
        """Return the number of children that a VM may take whole, at most `slots`."""
        return min(slots, sum(child.gives_all_units for child in view.tree))

    def root_traits(self, policy: Policy, mode: str) -> frozenset[str]:
        """Return the elastic trait; on dedicated hosts one more bars general VMs."""
        own = frozenset({const.TRAIT_HIGH_PERFORMANCE} if mode == "dedicated" else ())
        return own | super().root_traits(policy, mode)

    def is_settled(
        self, policy: Policy, children: Sequence[Child], resident: Resident
    ) -> bool:
        """Return whether a resident holds all units of a child, or one of each."""
        return _takes_whole(resident) or _shares_all(children, resident)

    def completes(self, held: Holding) -> bool:
        """Return whether a holding has one unit per child, as a general VM's.

        Such a holding becomes incomplete when the policy's m grows.
        """
        return all(taken == {const.RC_UNIT: 1} for taken in held.values())

    def divide(
        self,
        policy: Policy,
        view: HostView,
        children: Sequence[Child],
        settled: Sequence[Resident],
        others: Sequence[Resident],
    ) -> Division:
        """Assign a whole child to each pinned VM, a unit per child to the others."""
        takers = [r for r in others if r.vm_class and r.vm_class.pinned]
        sharers = [r for r in others if r not in takers]
        whole = [resident for resident in settled if _takes_whole(resident)]
        shared = [resident for resident in settled if resident not in whole]
        if fault := _impossible(view, children, whole + takers, shared + sharers):
            return Division({}, (fault,))
        taken = {name for resident in whole for name in resident.held}
        free = [c.name for c in children if _gives_all(c) and c.name not in taken]
        needs: dict[str, Holding] = {
            taker.consumer: {free.pop(0): {const.RC_UNIT: const.UNITS_PER_CHILD}}
            for taker in takers
        }
        for sharer in sharers:
            lacking = (c.name for c in children if c.name not in sharer.held)
            needs[sharer.consumer] = {name: {const.RC_UNIT: 1} for name in lacking}
        return Division(needs)

    def tries_each(self, request: RequestFacts) -> bool:
        """Return whether a VM takes a whole child, so each child is a candidate."""
        return request.pinned and request.claimed

    def shortage(self, wanted: Mapping[str, int], of: list[Provider]) -> Reason | None:
        """Return a reason that lists the consumers of each child's units."""
        if const.RC_UNIT not in wanted:
            return None
        found: list[dict[str, Any]] = []
        for child in of:
            inventory = child.inventories[const.RC_UNIT]
            held = child.units()
            found.append(
                {
                    "child": child.name,
                    "total": inventory.total,
                    "max_unit": inventory.max_unit,
                    "used": sum(held.values()),
                    "whole": [c for c, n in held.items() if n == inventory.total],
                    "others": sum(1 for n in held.values() if n != inventory.total),
                }
            )
        return Reason(
            const.PLACEMENT_UNITS,
            {"amount": wanted[const.RC_UNIT], "children": found},
        )

    def settings(self) -> tuple[Setting, ...]:
        """Return the options that isolate elastic hosts, and let pinned VMs in."""
        return (ISOLATED_AGGREGATES, FALLBACK_QUERY, PIN_SET)


UNITS: Final = UnitsScheme()


def children_named(policy: Policy, host: str, slots: int) -> tuple[Child, ...]:
    """Return the m child providers of a host.

    :param host: name of the host's own provider
    :param slots: number of children that a VM may take whole
    """
    units = const.UNITS_PER_CHILD
    return tuple(
        Child(
            child_name(host, suffix),
            child_trait(suffix),
            {const.RC_UNIT: Inventory(units, units - (index >= slots))},
        )
        for index, suffix in enumerate(SUFFIXES[: children_per_host(policy)])
    )


def _gives_all(child: Child) -> bool:
    """Return whether one VM may take all units of a child."""
    return child.inventories[const.RC_UNIT].max_unit == const.UNITS_PER_CHILD


def _takes_whole(resident: Resident) -> bool:
    return [*resident.held.values()] == [{const.RC_UNIT: const.UNITS_PER_CHILD}]


def _shares_all(children: Sequence[Child], resident: Resident) -> bool:
    one = {const.RC_UNIT: 1}
    return bool(resident.held) and resident.held == {c.name: one for c in children}


def _impossible(
    view: HostView,
    children: Sequence[Child],
    whole: Sequence[Resident],
    shared: Sequence[Resident],
) -> str:
    """Return why these residents cannot be on the host together; empty if they can.

    :param whole: residents that take a whole child
    :param shared: residents that take a unit of each child
    """
    slots, units = sum(map(_gives_all, children)), const.UNITS_PER_CHILD
    if not (whole and shared) and len(whole) <= slots and len(shared) <= units:
        return ""
    high, general = (
        ", ".join(view.describe(resident.consumer) for resident in residents)
        for residents in (whole, shared)
    )
    return (
        f"{view.host} has {len(whole)} high-performance VMs ({high}) and "
        f"{len(shared)} general ones ({general}), and takes {slots} of the former "
        f"or {units} of the latter: move the others away"
    )


def children_per_host(policy: Policy) -> int:
    """Return m: the policy's ``elastic: {slots: m}``, or the slots of its largest host.

    A valid policy has at most as many as ``const.CHILD_LETTERS``.
    """
    return policy.elastic.slots or largest_slots(policy)


def children_of(trait: str) -> int:
    """Return the m that a trait of elastic hosts names."""
    return int(trait.rpartition("_")[2])


def child_trait(suffix: str) -> str:
    """Return the trait of the child with this letter on each host."""
    return f"{const.TRAIT_CHILD}{suffix.upper()}"
