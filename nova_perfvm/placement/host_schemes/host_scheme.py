# SPDX-License-Identifier: Apache-2.0
"""The host half of a placement scheme, with the defaults of most schemes.

nova-scheduler does not load this package.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from nova_perfvm.facts import Reason
from nova_perfvm.facts.demand import Demand
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Inventory, Provider
from nova_perfvm.placement.host_schemes.residents import Division, Holding, Resident
from nova_perfvm.placement.schemes.scheme import Scheme
from nova_perfvm.placement.settings import NO_FALLBACK_QUERY, Setting
from nova_perfvm.policy import Policy, VMClass, largest_slots

# How a host's CPUs are divided between pinned and other VMs.
Mode = Literal["dedicated", "shared", "mixed", "elastic"]


class HostOffer(NamedTuple):
    """Inventories and traits that provider.yaml adds to a compute host's own provider.

    :ivar inventories: {resource class: inventory}
    """

    inventories: Mapping[str, Inventory] = {}
    traits: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Child:
    """The wanted state of a host's child provider.

    :ivar name: name of the resource provider
    :ivar trait: trait that distinguishes the child from its siblings
    :ivar inventories: {resource class: inventory}
    """

    name: str
    trait: str
    inventories: Mapping[str, Inventory] = field(hash=False)


class HostScheme:
    """The host half of a value of the policy's key ``placement``.

    The base class gives the host's own provider an inventory that counts the VMs of a
    pinned class.

    :ivar scheme: the request half
    :cvar modes: the supported host modes, first the mode of a new host
    :cvar enrolled_modes: the modes of hosts that ``host enroll`` gives child providers
    :cvar enrolled_prefix: the prefix of the trait that ``host enroll`` gives a host
    :cvar enroll_options: options that ``host enroll`` needs
    :cvar by_slots: whether the children depend on the number of the host's slots
    :cvar noun: the children's resource in plain words
    :cvar settings: Nova options of this scheme, beside the options of all schemes
    """

    modes: ClassVar[tuple[Mode, ...]] = ("dedicated", "shared", "mixed")
    enrolled_modes: ClassVar[tuple[Mode, ...]] = ()
    enrolled_prefix: ClassVar[str] = ""
    enroll_options: ClassVar[tuple[str, ...]] = ()
    by_slots: ClassVar[bool] = False
    noun: ClassVar[str] = ""
    settings: ClassVar[tuple[Setting, ...]] = (NO_FALLBACK_QUERY,)

    def __init__(self, scheme: Scheme) -> None:
        """Keep the request half."""
        self.scheme = scheme

    def counts_by(self, name: str) -> bool:
        """Return whether the scheme counts VMs by a resource class in any policy."""
        own = self.scheme.resource_class
        return bool(own) and (name == own or name.startswith(f"{own}_"))

    def offers(
        self, policy: Policy, vm_class: VMClass | None, mode: str, slots: int
    ) -> HostOffer:
        """Return the inventory and trait in provider.yaml for a host's slots.

        :param vm_class: the pinned class of the host; None for a general host
        :param mode: the host's mode
        :param slots: number of VMs of the class that fit; Placement accepts no
            inventory of 0
        """
        name = self.scheme.slot_class(policy, vm_class) if vm_class else ""
        if not name or vm_class is None or not slots:
            return HostOffer()
        trait = self.scheme.trait(policy, vm_class)
        taken = self.scheme.amounts(policy, vm_class, 0)[name]
        return HostOffer(
            {name: Inventory(slots * taken, taken)},
            frozenset({trait} if trait else ()),
        )

    def children(self, policy: Policy, view: HostView, slots: int) -> tuple[Child, ...]:
        """Return the child providers that enrolling gives a host.

        :param slots: how many high-performance VMs the host may have; 0 for a host
            of general VMs only
        """
        return ()

    def as_enrolled(self, policy: Policy, traits: Collection[str]) -> Policy:
        """Return the policy that a host was enrolled under, read from its traits.

        Existing allocations are judged by that policy, even if `policy` differs.

        :param traits: enrolment traits of the host's provider
        """
        return policy

    def most_slots(self, policy: Policy) -> int:
        """Return the largest number of slots over all host shapes."""
        return largest_slots(policy.pinned_classes, policy.host_shapes)

    def usable_slots(self, policy: Policy, slots: int) -> int:
        """Return the number of a host's slots that VMs can use."""
        return slots

    def inventory(self, policy: Policy, slots: Mapping[str, int]) -> dict[str, str]:
        """Return the inventory of an empty host for pinned classes, as texts.

        :param slots: {class: number of VMs that fit}
        """
        return {
            name: str(slots[c.name] * self.scheme.amounts(policy, c, 0)[name])
            for c in policy.pinned_classes
            if (name := self.scheme.slot_class(policy, c))
        }

    def slots_seen(self, tree: Sequence[Provider]) -> tuple[int, int] | None:
        """Return the slots in a host's inventories, and the slots taken.

        :returns: None without an inventory of the scheme
        """
        found = [
            (provider.total(name), provider.used(name))
            for provider in tree
            for name in provider.inventories
            if self.counts_by(name)
        ]
        if not found:
            return None
        return sum(total for total, _ in found), sum(used for _, used in found)

    def capacity(self, view: HostView, demand: Demand, slots: int) -> int:
        """Return the number of pinned VMs that Placement admits to an empty host.

        :param demand: demand of one VM
        :param slots: number of VMs that fit the host's NUMA nodes
        """
        if not any("PCPU" in provider.inventories for provider in view.tree):
            return 0
        asked = demand.groups[0].resources if self.scheme.counts else {}
        for name, amount in asked.items():
            offered = (
                provider.inventories[name].capacity // amount
                for provider in view.providers
                if name in provider.inventories
            )
            slots = min(slots, max(offered, default=0))
        return slots

    def unfit(self, policy: Policy, view: HostView) -> str:
        """Return why a host cannot be enrolled; empty if it can."""
        return ""

    def mixed_pages(self, policy: Policy, view: HostView) -> str:
        """Return why Placement cannot count a host's huge pages; empty if it can."""
        return ""

    def root_traits(self, policy: Policy, mode: str) -> frozenset[str]:
        """Return nova_perfvm's traits for an enrolled host's own provider.

        :param mode: the host's mode
        """
        return frozenset({self.scheme.enrolled_trait(policy)})

    def is_settled(
        self, policy: Policy, children: Sequence[Child], resident: Resident
    ) -> bool:
        """Return whether a resident's allocations of the children are complete."""
        return not resident.held

    def may_take(self, resident: Resident) -> bool:
        """Return whether the scheme knows the right allocations of a resident."""
        return resident.vm_class is not None

    def completes(self, held: Holding) -> bool:
        """Return whether a resident with these allocations may get those it lacks.

        By default only a resident without allocations of the children may.
        """
        return not held

    def divide(
        self,
        policy: Policy,
        view: HostView,
        children: Sequence[Child],
        settled: Sequence[Resident],
        others: Sequence[Resident],
    ) -> Division:
        """Return the allocations of a host's children that residents lack.

        :param settled: residents with complete allocations
        :param others: servers that lack allocations
        """
        return Division({resident.consumer: {} for resident in others})

    def run_on(
        self, policy: Policy, children: Sequence[Child], resident: Resident
    ) -> Holding | None:
        """Return the right allocations of a server on the NUMA nodes that Nova chose.

        :returns: None if the nodes are unknown, or the scheme ignores them
        """
        return None

    def shortage(self, wanted: Mapping[str, int], of: list[Provider]) -> Reason | None:
        """Return a scheme-specific reason why matching providers are too full.

        :returns: None to explain each resource class instead
        """
        return None
