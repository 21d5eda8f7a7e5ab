# SPDX-License-Identifier: Apache-2.0
"""What hosts have in Placement under a scheme, and what they have under most schemes.

nova-scheduler loads no module of this package.
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
    """What provider.yaml adds to a compute host's own provider.

    :ivar inventories: by resource class
    """

    inventories: Mapping[str, Inventory] = {}
    traits: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Child:
    """One child provider of a host as it should be.

    :ivar name: name of the resource provider
    :ivar trait: the trait that tells it from its siblings
    :ivar inventories: by resource class
    """

    name: str
    trait: str
    inventories: Mapping[str, Inventory] = field(hash=False)


class HostScheme:
    """The host half of a value of the policy's key ``placement``.

    The base class gives the host's own provider an inventory that counts the VMs of a
    pinned class.

    :ivar scheme: the request half
    :cvar modes: the host modes that it knows; the first is that of a new host
    :cvar enrolled_modes: the modes of hosts that ``host enroll`` gives child providers
    :cvar enrolled_prefix: the prefix of the trait that ``host enroll`` gives a host
    :cvar enroll_options: what that needs on a command line beside the host
    :cvar by_slots: whether the children depend on the number of the host's slots
    :cvar noun: what VMs take of the children
    :cvar settings: the options that the scheme needs, beside those that all need
    """

    modes: ClassVar[tuple[Mode, ...]] = ("dedicated", "shared", "mixed")
    enrolled_modes: ClassVar[tuple[Mode, ...]] = ()
    enrolled_prefix: ClassVar[str] = ""
    enroll_options: ClassVar[tuple[str, ...]] = ()
    by_slots: ClassVar[bool] = False
    noun: ClassVar[str] = ""
    settings: ClassVar[tuple[Setting, ...]] = (NO_FALLBACK_QUERY,)

    def __init__(self, scheme: Scheme) -> None:
        """Take the request half."""
        self.scheme = scheme

    def counts_by(self, name: str) -> bool:
        """Return whether it counts VMs by a resource class, of whichever policy."""
        own = self.scheme.resource_class
        return bool(own) and (name == own or name.startswith(f"{own}_"))

    def offers(
        self, policy: Policy, vm_class: VMClass | None, mode: str, slots: int
    ) -> HostOffer:
        """Return what provider.yaml says for the slots of a host.

        :param vm_class: the pinned class that the host is for, None for none
        :param mode: of the host
        :param slots: VMs of the class that it may hold; of 0 Placement takes no
            inventory
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
        """Return the policy that a host was enrolled for, as its providers tell.

        What is there has to be judged by that, whatever is to be.

        :param traits: those of the host's provider that say that it is enrolled
        """
        return policy

    def most_slots(self, policy: Policy) -> int:
        """Return the largest number of slots that a host of any shape may have."""
        return largest_slots(policy.pinned_classes, policy.host_shapes)

    def usable_slots(self, policy: Policy, slots: int) -> int:
        """Return how many of a host's slots VMs can take."""
        return slots

    def inventory(self, policy: Policy, slots: Mapping[str, int]) -> dict[str, str]:
        """Return in words what an empty host has for VMs of pinned classes.

        :param slots: by class, how many VMs it holds
        """
        return {
            name: str(slots[c.name] * self.scheme.amounts(policy, c, 0)[name])
            for c in policy.pinned_classes
            if (name := self.scheme.slot_class(policy, c))
        }

    def slots_seen(self, tree: Sequence[Provider]) -> tuple[int, int] | None:
        """Return the slots that a host's providers show, and how many are taken.

        :returns: None if they show nothing by which the scheme counts
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
        """Return how many VMs of a pinned class Placement lets onto an empty host.

        :param demand: of such a VM
        :param slots: how many fit its NUMA nodes
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
        """Return the project's traits of an enrolled host's own provider.

        :param mode: of the provider
        """
        return frozenset({self.scheme.enrolled_trait(policy)})

    def is_settled(
        self, policy: Policy, children: Sequence[Child], resident: Resident
    ) -> bool:
        """Return whether a resident holds of the children what it may go on with."""
        return not resident.held

    def may_take(self, resident: Resident) -> bool:
        """Return whether it is known what a resident should hold of the children."""
        return resident.vm_class is not None

    def completes(self, held: Holding) -> bool:
        """Return whether the rest may be added to what a resident holds."""
        return not held

    def divide(
        self,
        policy: Policy,
        view: HostView,
        children: Sequence[Child],
        settled: Sequence[Resident],
        others: Sequence[Resident],
    ) -> Division:
        """Return what residents need of a host's children.

        :param settled: those that hold what they should
        :param others: servers that do not
        """
        return Division({resident.consumer: {} for resident in others})

    def run_on(
        self, policy: Policy, children: Sequence[Child], resident: Resident
    ) -> Holding | None:
        """Return what a server should hold, by the NUMA nodes that Nova runs it on.

        :returns: None where that does not matter, or is not known
        """
        return None

    def shortage(self, wanted: Mapping[str, int], of: list[Provider]) -> Reason | None:
        """Return in its own words why providers that suit a request are too full.

        :returns: None to have each resource class looked at
        """
        return None
