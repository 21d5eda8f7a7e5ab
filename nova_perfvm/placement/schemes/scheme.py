# SPDX-License-Identifier: Apache-2.0
"""The request half of a placement scheme, with the defaults of most schemes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from nova_perfvm import constants as const
from nova_perfvm.facts import RequestFacts
from nova_perfvm.facts.placement_request import Group
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.policy.model import Placement


class Scheme:
    """The request half of a value of the policy's key ``placement``.

    The base class counts the VMs of each pinned class by an inventory of the host's
    own provider: each VM takes one.

    :cvar name: the value of ``placement``
    :cvar summary: what hosts have under the scheme, for the help of an option
    :cvar resource_class: the resource class that counts VMs, or the prefix of such
        resource classes; empty if none does
    :cvar enrolls: whether ``host enroll`` gives hosts child providers
    :cvar isolates: whether isolated aggregates can keep general VMs off hosts with
        slots, so that flavors need not forbid a trait (``--isolated-aggregates``)
    :cvar steers: whether PerfVMNUMATopologyFilter makes nova-compute use certain NUMA
        nodes, by marker networks
    :cvar mixes: whether a host serves the VMs of all pinned classes
    """

    name: ClassVar[Placement]
    summary: ClassVar[str]
    resource_class: ClassVar[str] = ""
    enrolls: ClassVar[bool] = False
    isolates: ClassVar[bool] = False
    steers: ClassVar[bool] = False
    mixes: ClassVar[bool] = False

    @property
    def counts(self) -> bool:
        """Whether Placement counts VMs by a resource class of nova_perfvm."""
        return bool(self.resource_class)

    @property
    def offers_slots(self) -> bool:
        """Whether hosts offer slots by their provider.yaml."""
        return self.counts and not self.enrolls

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
        """Return the trait of a pinned class's hosts; empty if the scheme has none."""
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
        """Return a VM's amounts of nova_perfvm's resource classes, over all groups.

        :param memory_mb: memory of the VM in MiB
        """
        found = Counter(guaranteed_iops(vm_class) if self.counts else {})
        for group in self.groups(policy, vm_class, memory_mb):
            found.update(group.resources)
        return found

    def enrolled_trait(self, policy: Policy) -> str:
        """Return the trait that enrolling gives a host; empty without enrolling."""
        return ""

    def tries_each(self, request: RequestFacts) -> bool:
        """Return whether Nova is to try each allocation candidate of a host.

        By itself Nova tries only the first, for which concurrent requests contend.
        """
        return False


def guaranteed_iops(vm_class: VMClass) -> dict[str, int]:
    """Return the guaranteed IOPS that a VM of a class takes, by resource class."""
    amounts = {
        const.RC_READ_IOPS: vm_class.disk.read_iops,
        const.RC_WRITE_IOPS: vm_class.disk.write_iops,
    }
    return {name: n for name, n in amounts.items() if n is not None}


def is_ours(name: str) -> bool:
    """Return whether a trait or a resource class is nova_perfvm's."""
    return name.startswith(const.CUSTOM_PREFIX)
