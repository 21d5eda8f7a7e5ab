# SPDX-License-Identifier: Apache-2.0
"""The child providers of elastic hosts; :mod:`nova_perfvm.placement.schemes.units`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason
from nova_perfvm.facts.children import child_name
from nova_perfvm.facts.demand import Demand
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Inventory, Provider
from nova_perfvm.placement.host_schemes.host_scheme import Child, HostOffer, HostScheme
from nova_perfvm.placement.host_schemes.residents import Division, Holding, Resident
from nova_perfvm.placement.schemes.units import UNITS, child_trait, children_per_host
from nova_perfvm.placement.settings import FALLBACK_QUERY, ISOLATED_AGGREGATES, PIN_SET
from nova_perfvm.policy import Elastic, Policy, VMClass


class UnitsHosts(HostScheme):
    """Hosts under ``placement: units``."""

    modes = ("elastic", "dedicated", "shared")
    enrolled_modes = modes
    enrolled_prefix = const.TRAIT_ELASTIC
    by_slots = True
    noun = "units"
    # These keep VMs without units off elastic hosts, and admit VMs with units.
    settings = (ISOLATED_AGGREGATES, FALLBACK_QUERY, PIN_SET)

    def offers(
        self, policy: Policy, vm_class: VMClass | None, mode: str, slots: int
    ) -> HostOffer:
        """Return the trait that keeps general VMs off a dedicated host.

        Enrolling adds the units.
        """
        if vm_class is None or mode != "dedicated":
            return HostOffer()
        return HostOffer(traits=frozenset({self.scheme.trait(policy, vm_class)}))

    def children(self, policy: Policy, view: HostView, slots: int) -> tuple[Child, ...]:
        """Return the m child providers of a host."""
        return children_named(policy, view.root.name, slots)

    def as_enrolled(self, policy: Policy, traits: Collection[str]) -> Policy:
        """Return the policy with the number of children that the host's trait names."""
        mine = [t for t in traits if t.startswith(self.enrolled_prefix)]
        if not mine or self.scheme.enrolled_trait(policy) in mine:
            return policy
        return replace(policy, elastic=Elastic(max(map(children_of, mine))))

    def most_slots(self, policy: Policy) -> int:
        """Return the largest number of children that VMs may take whole."""
        count = children_per_host(policy)
        return max((c.capped(count) for c in policy.pinned_classes), default=0)

    def usable_slots(self, policy: Policy, slots: int) -> int:
        """Return the usable slots of a host: at most one for each child."""
        return min(slots, self.most_slots(policy))

    def inventory(self, policy: Policy, slots: Mapping[str, int]) -> dict[str, str]:
        """Return the trait and the children's units of an empty host, as texts."""
        children = children_named(policy, "", max(slots.values(), default=0))
        units = (child.inventories[const.RC_UNIT] for child in children)
        return {
            "trait": self.scheme.enrolled_trait(policy),
            const.RC_UNIT: ", ".join(
                f"{found.total} (at most {found.max_unit} a VM)" for found in units
            ),
        }

    def slots_seen(self, tree: Sequence[Provider]) -> tuple[int, int] | None:
        """Return the number of children offered whole, and of those taken whole."""
        if not any(const.RC_UNIT in provider.inventories for provider in tree):
            return None
        whole = [child for child in tree if child.gives_all_units]
        taken = [c for c in whole if c.total(const.RC_UNIT) in c.units().values()]
        return len(whole), len(taken)

    def capacity(self, view: HostView, demand: Demand, slots: int) -> int:
        """Return the number of VMs that find a child offered whole."""
        return min(slots, sum(child.gives_all_units for child in view.tree))

    def root_traits(self, policy: Policy, mode: str) -> frozenset[str]:
        """Return the traits of a host, with TRAIT_HIGH_PERFORMANCE on a dedicated one.

        That trait keeps general VMs off.
        """
        own = frozenset({const.TRAIT_HIGH_PERFORMANCE} if mode == "dedicated" else ())
        return own | super().root_traits(policy, mode)

    def is_settled(
        self, policy: Policy, children: Sequence[Child], resident: Resident
    ) -> bool:
        """Return whether a resident holds one whole child, or a unit of each child."""
        return _takes_whole(resident) or _shares_all(children, resident)

    def completes(self, held: Holding) -> bool:
        """Return whether all allocations are single units, as general VMs hold.

        When the policy adds children, a general VM needs a unit of each new one.
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
        """Give a whole child to each pinned VM, and a unit of each to others."""
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

    def shortage(self, wanted: Mapping[str, int], of: list[Provider]) -> Reason | None:
        """Return the reason, with the consumers of each matching child's units.

        None for a part without units.
        """
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


HOSTS: Final = UnitsHosts(UNITS)


def children_named(policy: Policy, host: str, slots: int) -> tuple[Child, ...]:
    """Return the child providers of a host.

    :param host: name of the host's provider
    :param slots: how many of the host's m children one VM may take whole; the others
        have max_unit N-1
    """
    units = const.UNITS_PER_CHILD
    return tuple(
        Child(
            child_name(host, suffix),
            child_trait(suffix),
            {const.RC_UNIT: Inventory(units, units - (index >= slots))},
        )
        for index, suffix in enumerate(const.CHILD_LETTERS[: children_per_host(policy)])
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
    """Return why these VMs cannot share a host; empty if they can.

    :param whole: VMs that take a whole child
    :param shared: VMs that take one unit of each child
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


def children_of(trait: str) -> int:
    """Return the number of children, m, in a trait of elastic hosts."""
    return int(trait.rpartition("_")[2])
