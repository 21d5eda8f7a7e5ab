# SPDX-License-Identifier: Apache-2.0
"""What the rest of the project asks of a scheme, and what most schemes answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason, RequestFacts
from nova_perfvm.facts.demand import Demand
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.placement_request import Group
from nova_perfvm.facts.snapshot import Inventory, Provider
from nova_perfvm.placement.schemes.residents import Division, Holding, Resident
from nova_perfvm.placement.settings import NO_FALLBACK_QUERY, Setting
from nova_perfvm.policy import Policy, VMClass, largest_slots
from nova_perfvm.policy.model import Placement

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


class Claims(NamedTuple):
    """What a server takes of its host of the project's resource classes.

    :ivar wanted: what a VM of its class takes
    :ivar held: what it has been allocated
    :ivar excess: what it holds and should not of what counts VMs
    """

    wanted: Counter[str]
    held: Counter[str]
    excess: Counter[str]

    @property
    def lacking(self) -> Counter[str]:
        """What it should hold and does not."""
        return self.wanted - self.held


class Scheme:
    """How Placement counts VMs: one value of the policy's key ``placement``.

    Without methods of its own, a scheme counts the VMs of each pinned class by an
    inventory of the host's own provider, of which a VM takes one.

    :cvar name: the value of ``placement``
    :cvar summary: what hosts have under it, as the help of an option says it
    :cvar modes: the host modes that it knows; the first is that of a new host
    :cvar resource_class: what it counts VMs by, or how names of such begin; empty if
        it counts none
    :cvar enrolled_modes: those of hosts that ``host enroll`` gives child providers
    :cvar enrolled_prefix: how the trait begins that it then gives them
    :cvar enroll_options: what that needs on a command line beside the host
    :cvar by_slots: whether these depend on the number of the host's slots
    :cvar noun: what VMs take of these
    :cvar isolates: whether isolated aggregates can keep general VMs off hosts with
        slots, so that their flavors need not (``--isolated-aggregates``)
    :cvar steers: whether our filter of NUMA topologies tells nova-compute where on a
        host to put a VM, by physical networks in name only
    :cvar mixes: whether a host serves the VMs of all pinned classes
    """

    name: ClassVar[Placement]
    summary: ClassVar[str]
    modes: ClassVar[tuple[Mode, ...]] = ("dedicated", "shared", "mixed")
    resource_class: ClassVar[str] = ""
    enrolled_modes: ClassVar[tuple[Mode, ...]] = ()
    enrolled_prefix: ClassVar[str] = ""
    enroll_options: ClassVar[tuple[str, ...]] = ()
    by_slots: ClassVar[bool] = False
    noun: ClassVar[str] = ""
    isolates: ClassVar[bool] = False
    steers: ClassVar[bool] = False
    mixes: ClassVar[bool] = False

    @property
    def counts(self) -> bool:
        """Whether Placement counts anything of the project's."""
        return bool(self.resource_class)

    @property
    def enrolls(self) -> bool:
        """Whether hosts get child providers."""
        return bool(self.enrolled_modes)

    @property
    def offers_slots(self) -> bool:
        """Whether hosts have slots by their provider.yaml."""
        return self.counts and not self.enrolls

    def counts_by(self, name: str) -> bool:
        """Return whether it counts VMs by a resource class, of whichever policy."""
        own = self.resource_class
        return bool(own) and (name == own or name.startswith(f"{own}_"))

    # What a VM asks.

    def groups(
        self, policy: Policy, vm_class: VMClass, memory_mb: int
    ) -> Iterator[Group]:
        """Yield what a VM of a class takes, the group without a suffix first.

        :param memory_mb: of the VM
        """
        if not vm_class.pinned:
            yield Group("", {}, forbidden=self.traits_to_avoid(policy))
            return
        slot, trait = self.slot_class(policy, vm_class), self.trait(policy, vm_class)
        yield Group("", {slot: 1} if slot else {}, frozenset({trait} if trait else ()))

    def group_policy(self, vm_class: VMClass) -> str:
        """Return whether two groups with a suffix may be met by one provider."""
        return "none"

    def slot_class(self, policy: Policy, vm_class: VMClass) -> str:
        """Return the resource class that counts VMs of a pinned class on a host.

        That is on the host's own provider; empty if that counts none.  With several
        pinned classes each has names of its own, so that no VM of one can take, or
        be forced into, a slot that was counted for another.
        """
        if not self.offers_slots:
            return ""
        return self._slot_class(policy, vm_class, self.resource_class)

    @staticmethod
    def _slot_class(policy: Policy, vm_class: VMClass, name: str) -> str:
        if len(policy.pinned_classes) == 1:
            return name
        return f"{name}_{vm_class.custom_name}"

    def trait(self, policy: Policy, vm_class: VMClass) -> str:
        """Return the trait of hosts for a pinned class alone; empty for none."""
        if not self.counts:
            return ""
        if len(policy.pinned_classes) == 1:
            return const.TRAIT_HIGH_PERFORMANCE
        return f"{const.CUSTOM_PREFIX}{vm_class.custom_name}"

    def traits_to_avoid(self, policy: Policy) -> frozenset[str]:
        """Return the traits of hosts that VMs which share CPUs keep off.

        Not of hosts that are divided by NUMA node: there they are meant to meet.
        """
        return frozenset(
            trait
            for vm_class in policy.pinned_classes
            if vm_class.exclusive == "host" and (trait := self.trait(policy, vm_class))
        )

    def amounts(
        self, policy: Policy, vm_class: VMClass, memory_mb: int
    ) -> Counter[str]:
        """Return how much a VM takes of each of the project's resource classes."""
        found = Counter(guaranteed_iops(vm_class) if self.counts else {})
        for group in self.groups(policy, vm_class, memory_mb):
            found.update(group.resources)
        return found

    def counted_by(self, policy: Policy, vm_class: VMClass) -> str:
        """Return the resource class by which Placement knows how many VMs there are.

        VMs of other classes may take of it, too.

        :param vm_class: a pinned class, whose VMs they are
        """
        return self.slot_class(policy, vm_class) or self.resource_class or const.PCPU

    # What a host offers.

    def offers(
        self, policy: Policy, vm_class: VMClass | None, mode: str, slots: int
    ) -> HostOffer:
        """Return what provider.yaml says for the slots of a host.

        :param vm_class: the pinned class that the host is for, None for none
        :param mode: of the host
        :param slots: VMs of the class that it may hold; of 0 Placement takes no
            inventory
        """
        name = self.slot_class(policy, vm_class) if vm_class else ""
        if not name or vm_class is None or not slots:
            return HostOffer()
        trait, taken = self.trait(policy, vm_class), self._taken(policy, vm_class)
        return HostOffer(
            {name: Inventory(slots * taken, taken)},
            frozenset({trait} if trait else ()),
        )

    def _taken(self, policy: Policy, vm_class: VMClass) -> int:
        """Return how much of what counts VMs each takes."""
        return self.amounts(policy, vm_class, 0)[self.slot_class(policy, vm_class)]

    def children(self, policy: Policy, view: HostView, slots: int) -> tuple[Child, ...]:
        """Return the child providers that enrolling gives a host.

        :param slots: how many high-performance VMs the host may have; 0 for a host
            of general VMs only
        """
        return ()

    def enrolled_trait(self, policy: Policy) -> str:
        """Return the trait that enrolling gives a host; empty without enrolling."""
        return ""

    def has_made(self, view: HostView) -> bool:
        """Return whether enrolling by it gave a host its trait or its children."""
        return self.enrolls and (
            any(t.startswith(self.enrolled_prefix) for t in view.root.elastic_traits)
            or any(self.counts_by(n) for c in view.children for n in c.inventories)
        )

    def as_enrolled(self, policy: Policy, traits: Collection[str]) -> Policy:
        """Return the policy that a host was enrolled for, as its providers tell.

        What is there has to be judged by that, whatever is to be.

        :param traits: those of the host's provider that say that it is enrolled
        """
        return policy

    def most_slots(self, policy: Policy) -> int:
        """Return the largest number of slots that a host of any shape may have."""
        return largest_slots(policy)

    def usable_slots(self, policy: Policy, slots: int) -> int:
        """Return how many of a host's slots VMs can take."""
        return slots

    def inventory(self, policy: Policy, slots: Mapping[str, int]) -> dict[str, str]:
        """Return in words what an empty host has for VMs of pinned classes.

        :param slots: by class, how many VMs it holds
        """
        return {
            name: str(slots[vm_class.name] * self._taken(policy, vm_class))
            for vm_class in policy.pinned_classes
            if (name := self.slot_class(policy, vm_class))
        }

    # What is seen of a cloud.

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
        for name, amount in demand.groups[0].resources.items() if self.counts else ():
            offered = (
                provider.inventories[name].capacity // amount
                for provider in view.providers
                if name in provider.inventories
            )
            slots = min(slots, max(offered, default=0))
        return slots

    def claims(
        self,
        policy: Policy,
        vm_class: VMClass,
        memory_mb: int,
        held: Mapping[str, int],
    ) -> Claims:
        """Return what a server takes of its host, and should.

        :param memory_mb: of the server
        :param held: what it has been allocated there, by resource class
        """
        wanted, has = self.amounts(policy, vm_class, memory_mb), Counter(held)
        excess = Counter(
            {n: amount for n, amount in (has - wanted).items() if _counts_vms(n)}
        )
        return Claims(wanted, has, excess)

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
        return frozenset({self.enrolled_trait(policy)})

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

    # How a host's candidates are met.

    def tries_each(self, request: RequestFacts) -> bool:
        """Return whether Nova shall try each allocation candidate of a host.

        Nova tries the first alone, which several requests at once then contend for.
        """
        return False

    def nodes_offered(self, view: HostView, demand: Demand) -> frozenset[int] | None:
        """Return the NUMA nodes of a host that have room; None if none is asked for."""
        return None

    def on_nodes(
        self,
        view: HostView,
        allocation: Mapping[str, Mapping[str, int]],
        nodes: Sequence[int],
    ) -> Mapping[str, Mapping[str, int]]:
        """Return an allocation, by provider's UUID, with its NUMA nodes exchanged."""
        return allocation

    def shortage(self, wanted: Mapping[str, int], of: list[Provider]) -> Reason | None:
        """Return in its own words why providers that suit a request are too full.

        :returns: None to have each resource class looked at
        """
        return None

    def settings(self) -> tuple[Setting, ...]:
        """Return the options that the scheme needs, beside those that all need."""
        return (NO_FALLBACK_QUERY,)


def guaranteed_iops(vm_class: VMClass) -> dict[str, int]:
    """Return the I/O operations per second that each VM of a class takes."""
    amounts = {
        const.RC_READ_IOPS: vm_class.disk.read_iops,
        const.RC_WRITE_IOPS: vm_class.disk.write_iops,
    }
    return {name: n for name, n in amounts.items() if n is not None}


def is_ours(name: str) -> bool:
    """Return whether a trait or a resource class is the project's own."""
    return name.startswith(const.CUSTOM_PREFIX)


def _counts_vms(name: str) -> bool:
    """Return whether a resource class is the project's, and not what disks give."""
    return is_ours(name) and name not in {const.RC_READ_IOPS, const.RC_WRITE_IOPS}
