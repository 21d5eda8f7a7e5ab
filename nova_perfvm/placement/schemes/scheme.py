# SPDX-License-Identifier: Apache-2.0
"""The interface of a placement scheme, with the answers that most schemes share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason, RequestFacts
from nova_perfvm.facts.demand import Demand, Group
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Inventory, Provider
from nova_perfvm.placement.schemes.residents import Division, Holding, Resident
from nova_perfvm.placement.settings import NO_FALLBACK_QUERY, Setting
from nova_perfvm.policy import Policy, VMClass, largest_slots
from nova_perfvm.policy.model import Placement

# How a host's CPUs are divided between pinned and other VMs.
Mode = Literal["dedicated", "shared", "mixed", "elastic"]


class HostOffer(NamedTuple):
    """Inventories (by resource class) and traits that provider.yaml adds to a host."""

    inventories: Mapping[str, Inventory] = {}
    traits: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Child:
    """A child provider of a host that enrolling creates.

    :ivar name: name of the resource provider
    :ivar trait: trait of the provider, which flavors require
    :ivar inventories: by resource class
    """

    name: str
    trait: str
    inventories: Mapping[str, Inventory] = field(hash=False)


class Claims(NamedTuple):
    """A server's amounts of the project's resource classes on its host.

    :ivar wanted: amounts that its class prescribes
    :ivar held: amounts that Placement has allocated
    :ivar excess: amounts above ``wanted``, of the classes that count VMs
    """

    wanted: Counter[str]
    held: Counter[str]
    excess: Counter[str]

    @property
    def lacking(self) -> Counter[str]:
        """Amounts of ``wanted`` that are missing from ``held``."""
        return self.wanted - self.held


class Scheme:
    """How Placement counts VMs: one value of the policy's key ``placement``.

    By default a scheme counts the VMs of each pinned class by an inventory of the
    host's own provider, of which a VM takes one.

    :cvar name: the value of ``placement``
    :cvar summary: inventories of hosts under the scheme, for the help of an option
    :cvar modes: the host modes that the scheme supports, the default one first
    :cvar resource_class: the resource class that counts VMs, or the beginning of its
        name; empty if the scheme counts none
    :cvar enrolled_modes: modes of the hosts that get child providers by ``host enroll``
    :cvar enrolled_prefix: beginning of the trait that ``host enroll`` sets on hosts
    :cvar enroll_options: options that ``host enroll`` needs
    :cvar by_slots: whether child providers depend on the number of the host's slots
    :cvar noun: name of the resources of child providers, for messages
    :cvar isolates: whether isolated aggregates can keep general VMs off hosts with
        slots, so that flavors need not forbid a trait (``--isolated-aggregates``)
    :cvar steers: whether PerfVMNUMATopologyFilter makes nova-compute use certain NUMA
        nodes, by marker networks
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
        """Whether Placement counts VMs by a resource class of the project."""
        return bool(self.resource_class)

    @property
    def enrolls(self) -> bool:
        """Whether hosts get child providers by ``host enroll``."""
        return bool(self.enrolled_modes)

    @property
    def offers_slots(self) -> bool:
        """Whether hosts offer slots by their provider.yaml."""
        return self.counts and not self.enrolls

    def counts_by(self, name: str) -> bool:
        """Return whether the scheme counts VMs by a resource class under any policy."""
        own = self.resource_class
        return bool(own) and (name == own or name.startswith(f"{own}_"))

    # Requests of VMs.

    def groups(
        self, policy: Policy, vm_class: VMClass, memory_mb: int
    ) -> Iterator[Group]:
        """Yield the groups of a VM's request, the group without a suffix first.

        :param memory_mb: memory of the VM in MiB
        """
        if not vm_class.pinned:
            yield Group("", {}, forbidden=self.traits_to_avoid(policy))
            return
        slot, trait = self.slot_class(policy, vm_class), self.trait(policy, vm_class)
        yield Group("", {slot: 1} if slot else {}, frozenset({trait} if trait else ()))

    def group_policy(self, vm_class: VMClass) -> str:
        """Return the ``group_policy`` of a VM's request: ``none`` or ``isolate``.

        Under ``isolate`` each suffixed group needs a provider of its own.
        """
        return "none"

    def slot_class(self, policy: Policy, vm_class: VMClass) -> str:
        """Return the resource class on a host's own provider that counts a class's VMs.

        Empty if the host's own provider counts none.  With several pinned classes each
        class has its own resource class, so that no VM can take, even on a forced host,
        another class's slot.
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
        """Return the trait that marks hosts for a pinned class; empty without one."""
        if not self.counts:
            return ""
        if len(policy.pinned_classes) == 1:
            return const.TRAIT_HIGH_PERFORMANCE
        return f"{const.CUSTOM_PREFIX}{vm_class.custom_name}"

    def traits_to_avoid(self, policy: Policy) -> frozenset[str]:
        """Return the host traits that VMs which share CPUs forbid.

        Only classes with ``exclusive: host`` count: with ``exclusive: cell``, both
        kinds of VMs may run on the same host.
        """
        return frozenset(
            trait
            for vm_class in policy.pinned_classes
            if vm_class.exclusive == "host" and (trait := self.trait(policy, vm_class))
        )

    def amounts(
        self, policy: Policy, vm_class: VMClass, memory_mb: int
    ) -> Counter[str]:
        """Return a VM's amounts of the project's resource classes, over all groups.

        :param memory_mb: memory of the VM in MiB
        """
        found = Counter(guaranteed_iops(vm_class) if self.counts else {})
        for group in self.groups(policy, vm_class, memory_mb):
            found.update(group.resources)
        return found

    def counted_by(self, policy: Policy, vm_class: VMClass) -> str:
        """Return the resource class by which Placement counts a pinned class's VMs.

        Other VMs may take amounts of the same resource class.
        """
        return self.slot_class(policy, vm_class) or self.resource_class or const.PCPU

    # Inventories of hosts.

    def offers(
        self, policy: Policy, vm_class: VMClass | None, mode: str, slots: int
    ) -> HostOffer:
        """Return the inventories and traits for the provider.yaml of a host.

        :param vm_class: the pinned class that the host serves, or None
        :param mode: the host's mode
        :param slots: number of VMs of the class that the host may hold; for 0 there is
            no inventory, as Placement refuses a total of 0
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
        """Return the amount of the class's slot resource class that a VM takes."""
        return self.amounts(policy, vm_class, 0)[self.slot_class(policy, vm_class)]

    def children(self, policy: Policy, view: HostView, slots: int) -> tuple[Child, ...]:
        """Return the child providers that enrolling gives a host.

        :param slots: number of high-performance VMs that the host may hold; 0 for a
            host of general VMs only
        """
        return ()

    def enrolled_trait(self, policy: Policy) -> str:
        """Return the trait that enrolling gives a host; empty without enrolling."""
        return ""

    def has_made(self, view: HostView) -> bool:
        """Return whether a host has the trait or child providers of this scheme."""
        return self.enrolls and (
            any(t.startswith(self.enrolled_prefix) for t in view.root.elastic_traits)
            or any(self.counts_by(n) for c in view.children for n in c.inventories)
        )

    def as_enrolled(self, policy: Policy, traits: Collection[str]) -> Policy:
        """Return the policy with the values under which a host was enrolled.

        A host's present allocations have to be judged by these values, even if the
        policy has changed since.

        :param traits: traits of the host's provider that enrolling has set
        """
        return policy

    def most_slots(self, policy: Policy) -> int:
        """Return the most slots of a host of any shape."""
        return largest_slots(policy)

    def usable_slots(self, policy: Policy, slots: int) -> int:
        """Return the number of a host's slots that VMs can take under the scheme."""
        return slots

    def inventory(self, policy: Policy, slots: Mapping[str, int]) -> dict[str, str]:
        """Return the inventory of an empty host for pinned classes, in words.

        :param slots: number of VMs that the host holds, by class name
        :returns: {resource class (or ``trait``): amount in words}
        """
        return {
            name: str(slots[vm_class.name] * self._taken(policy, vm_class))
            for vm_class in policy.pinned_classes
            if (name := self.slot_class(policy, vm_class))
        }

    # Observations of a cloud.

    def slots_seen(self, tree: Sequence[Provider]) -> tuple[int, int] | None:
        """Return the total and the used slots in the inventories of a host's providers.

        :returns: None if no inventory is one by which the scheme counts
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
        """Return the number of VMs of a pinned class that Placement admits to a host.

        The host is taken to be empty.

        :param demand: demand of a VM of the class
        :param slots: number of VMs that fit the host's NUMA nodes
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
        """Compare a server's allocation on its host with its class.

        :param memory_mb: memory of the server in MiB
        :param held: allocated amounts by resource class
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
        """Return the traits that enrolling sets on a host's own provider.

        :param mode: the host's mode
        """
        return frozenset({self.enrolled_trait(policy)})

    def is_settled(
        self, policy: Policy, children: Sequence[Child], resident: Resident
    ) -> bool:
        """Return whether a resident's allocations of the children need no change."""
        return not resident.held

    def may_take(self, resident: Resident) -> bool:
        """Return whether the children's amounts for a resident can be determined."""
        return resident.vm_class is not None

    def completes(self, held: Holding) -> bool:
        """Return whether missing amounts may be added to what a resident holds."""
        return not held

    def divide(
        self,
        policy: Policy,
        view: HostView,
        children: Sequence[Child],
        settled: Sequence[Resident],
        others: Sequence[Resident],
    ) -> Division:
        """Return the amounts of a host's children that residents lack.

        :param settled: residents whose allocations need no change
        :param others: servers whose allocations are incomplete
        """
        return Division({resident.consumer: {} for resident in others})

    def run_on(
        self, policy: Policy, children: Sequence[Child], resident: Resident
    ) -> Holding | None:
        """Return the holding of a server that matches its NUMA nodes in Nova.

        :returns: None if NUMA nodes do not matter, or the server's are unknown
        """
        return None

    # Allocation candidates of a host.

    def tries_each(self, request: RequestFacts) -> bool:
        """Return whether Nova is to try each allocation candidate of a host.

        By itself Nova tries only the first, for which concurrent requests contend.
        """
        return False

    def nodes_offered(self, view: HostView, demand: Demand) -> frozenset[int] | None:
        """Return the IDs of the NUMA nodes with room for a request.

        None if the request does not ask for NUMA nodes.
        """
        return None

    def on_nodes(
        self,
        view: HostView,
        allocation: Mapping[str, Mapping[str, int]],
        nodes: Sequence[int],
    ) -> Mapping[str, Mapping[str, int]]:
        """Return an allocation (by provider's UUID) moved to other NUMA nodes.

        :param nodes: IDs of the new NUMA nodes, one for each in the allocation
        """
        return allocation

    def shortage(self, wanted: Mapping[str, int], of: list[Provider]) -> Reason | None:
        """Return the scheme's own reason why suitable providers cannot give amounts.

        :param wanted: amounts by resource class
        :param of: the providers
        :returns: None for the default reason, by resource class
        """
        return None

    def settings(self) -> tuple[Setting, ...]:
        """Return the options that the scheme needs beside the common options."""
        return (NO_FALLBACK_QUERY,)


def guaranteed_iops(vm_class: VMClass) -> dict[str, int]:
    """Return the guaranteed IOPS that a VM of a class takes, by resource class."""
    amounts = {
        const.RC_READ_IOPS: vm_class.disk.read_iops,
        const.RC_WRITE_IOPS: vm_class.disk.write_iops,
    }
    return {name: n for name, n in amounts.items() if n is not None}


def is_ours(name: str) -> bool:
    """Return whether a trait or a resource class is the project's own."""
    return name.startswith(const.CUSTOM_PREFIX)


def _counts_vms(name: str) -> bool:
    """Return whether a resource class is the project's, and not one of IOPS."""
    return is_ours(name) and name not in {const.RC_READ_IOPS, const.RC_WRITE_IOPS}
