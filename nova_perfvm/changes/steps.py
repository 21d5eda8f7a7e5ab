# SPDX-License-Identifier: Apache-2.0
"""The steps by which a cloud is changed; a run may end after any of them.

Every run decides by what it sees, not by what an earlier one did.  So a step that
is taken twice, or that another run takes meanwhile, must do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from nova_perfvm import constants as const
from nova_perfvm.facts.snapshot import CREATED, Inventory, isolating


@dataclass(frozen=True)
class Change:
    """One step.

    :cvar words: what it does, with fields of the step
    :cvar look_again: whether the plan has to be made anew after it, as the rest
        rests on whom it keeps out, or on what Nova changes by itself
    """

    words: ClassVar[str]
    look_again: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.words.format(self)


@dataclass(frozen=True)
class CreateName(Change):
    """Make a trait or resource class known to Placement."""

    words = "create {0.kind} {0.name}"
    action = "create"
    detail = ""
    name: str
    kind: str


@dataclass(frozen=True)
class DeleteName(Change):
    """Delete a trait or resource class from Placement, unless it is in use."""

    words = "delete {0.kind} {0.name}, unless it is in use"
    name: str
    kind: str


@dataclass(frozen=True)
class CreateAggregate(Change):
    """Create an aggregate that isolates its hosts."""

    words = "create aggregate {0.name}"
    name: str


@dataclass(frozen=True)
class IsolateAggregate(Change):
    """Keep what does not ask for a trait off the hosts of an aggregate.

    :ivar created: the aggregate is one that this run creates
    :ivar label: the classes that its hosts are for, empty to leave that open
    """

    name: str
    trait: str
    created: bool = False
    label: str = ""

    @property
    def metadata(self) -> dict[str, str]:
        """What the aggregate gets."""
        found = isolating(self.trait)
        if self.label:
            found[const.CLASS_KEY] = self.label
        return found | (CREATED if self.created else {})

    def __str__(self) -> str:
        label = f" and {const.CLASS_KEY}={self.label}" if self.label else ""
        return f"set trait:{self.trait}=required{label} on aggregate {self.name}"


@dataclass(frozen=True)
class AddHost(Change):
    """Put a host into an aggregate."""

    words = "put {0.host} into aggregate {0.name}"
    look_again = True
    name: str
    host: str


@dataclass(frozen=True)
class RemoveHost(Change):
    """Take a host out of an aggregate."""

    words = "take {0.host} out of aggregate {0.name}"
    name: str
    host: str


@dataclass(frozen=True)
class LeaveAggregate(RemoveHost):
    """Take a host out of an aggregate whose trait is another than the host's."""

    look_again = True


@dataclass(frozen=True)
class DeleteAggregate(Change):
    """Delete an aggregate that has no host."""

    words = "delete aggregate {0.name}, which has no host left"
    name: str


@dataclass(frozen=True)
class SetProviderAggregates(Change):
    """Put a host's provider into the aggregates of its host."""

    words = "set the aggregates of provider {0.name} as Nova has them"
    look_again = True
    uuid: str
    name: str
    aggregates: frozenset[str]


@dataclass(frozen=True)
class SetService(Change):
    """Disable a compute service, or enable it again."""

    look_again = True
    id: str
    host: str
    enabled: bool

    def __str__(self) -> str:
        return f"{'enable' if self.enabled else 'disable'} nova-compute on {self.host}"


@dataclass(frozen=True)
class CreateChild(Change):
    """Create a child provider without inventories and traits."""

    words = "create provider {0.name}"
    parent: str
    uuid: str
    name: str


@dataclass(frozen=True)
class AdoptChild(Change):
    """Attach a provider that an earlier run has detached to a host's tree."""

    words = "put provider {0.name} back into the host's tree"
    parent: str
    uuid: str
    name: str


@dataclass(frozen=True)
class DetachChild(Change):
    """Take an empty child provider out of its host's tree.

    It is not deleted: nova-compute keeps the tree in a cache, and its updates fail
    while a provider that the cache has does not exist.  One that exists outside of
    the tree makes nothing fail.
    """

    words = "take provider {0.name}, which is empty, out of the host's tree"
    uuid: str
    name: str


@dataclass(frozen=True)
class SetTraits(Change):
    """Set all traits of a provider.

    :ivar opens: VMs with units may come from now on
    """

    uuid: str
    name: str
    traits: frozenset[str]
    before: frozenset[str] = frozenset()
    opens: bool = False

    def __str__(self) -> str:
        added = [f"+{trait}" for trait in sorted(self.traits - self.before)]
        removed = [f"-{trait}" for trait in sorted(self.before - self.traits)]
        return f"set traits of provider {self.name}: {' '.join(added + removed)}"


@dataclass(frozen=True)
class SetInventory(Change):
    """Set all inventories of a provider; none if it is to be detached."""

    uuid: str
    name: str
    inventories: Mapping[str, Inventory]

    def __str__(self) -> str:
        if not self.inventories:
            return f"empty provider {self.name}"
        text = ", ".join(
            f"{name} {inventory.total}, at most {inventory.max_unit} a VM"
            for name, inventory in self.inventories.items()
        )
        return f"set inventory of provider {self.name}: {text}"


@dataclass(frozen=True)
class DeleteChild(Change):
    """Delete a provider that was a child, when no nova-compute knows it any more."""

    words = "delete provider {0.name}, which is empty"
    uuid: str
    name: str


@dataclass(frozen=True)
class AddUnits(Change):
    """Add units to what a running server has, and leave the rest as it is.

    :ivar units: by provider
    """

    look_again = True
    server: str
    name: str
    units: Mapping[str, int]

    @property
    def resources(self) -> Mapping[str, Mapping[str, int]]:
        """The amounts by provider and resource class."""
        return {uuid: {const.RC_UNIT: units} for uuid, units in self.units.items()}

    def __str__(self) -> str:
        amounts = " + ".join(str(amount) for amount in self.units.values())
        return f"add {amounts} units to the allocation of {self.name}"


@dataclass(frozen=True)
class Allocate(Change):
    """Allocate to a running server what Placement has lost, units included.

    :ivar resources: amounts by provider and resource class
    """

    look_again = True
    server: str
    name: str
    resources: Mapping[str, Mapping[str, int]]

    def __str__(self) -> str:
        amounts = [
            f"{amount} {name}"
            for resources in self.resources.values()
            for name, amount in sorted(resources.items())
        ]
        return f"allocate {', '.join(amounts)} to {self.name}"


@dataclass(frozen=True)
class RemoveUnits(Change):
    """Remove the units from a consumer's allocation, and leave the rest as it is.

    :ivar providers: those of which it holds units
    """

    words = "take the units out of the allocation of {0.name}"
    look_again = True
    consumer: str
    name: str
    providers: frozenset[str]


@dataclass(frozen=True)
class Left:
    """What a sync leaves as it is, and why."""

    action = "leave"
    kind: str
    name: str
    detail: str


@dataclass(frozen=True)
class Plan:
    """What is to be done, in this order, or why nothing is.

    :ivar refusals: each names what is in the way and the remedy
    :ivar left: what is as it should be, or not this policy's
    """

    changes: tuple[Change, ...] = ()
    refusals: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
