# SPDX-License-Identifier: Apache-2.0
"""What can be changed on a cloud, each change one step that may be the last.

Every run decides by what it sees, not by what an earlier one did.  So a change
that was made twice, or that another run made meanwhile, must do no harm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nova_perfvm.facts.elastic_host import Inventory


@dataclass(frozen=True)
class Change:
    """One step.

    :cvar look_again: the rest of the plan rests on what follows from this
        step: whom it kept out, or what Nova changed on its own
    """

    look_again: ClassVar[bool] = False


@dataclass(frozen=True)
class CreateName(Change):
    """Make a trait or resource class known to Placement."""

    action = "create"
    detail = ""
    name: str
    kind: str

    def __str__(self) -> str:
        return f"create {self.kind} {self.name}"


@dataclass(frozen=True)
class DeleteName(Change):
    """Let Placement forget a trait or resource class, unless it is in use."""

    name: str
    kind: str

    def __str__(self) -> str:
        return f"delete {self.kind} {self.name}, unless it is in use"


@dataclass(frozen=True)
class CreateAggregate(Change):
    """Create an aggregate that isolates its hosts."""

    name: str

    def __str__(self) -> str:
        return f"create aggregate {self.name}"


@dataclass(frozen=True)
class IsolateAggregate(Change):
    """Keep what does not ask for a trait off the hosts of an aggregate.

    :ivar created: the aggregate is one that this run creates
    """

    name: str
    trait: str
    created: bool = False

    def __str__(self) -> str:
        return f"set trait:{self.trait}=required on aggregate {self.name}"


@dataclass(frozen=True)
class AddHost(Change):
    """Put a host into an aggregate."""

    look_again = True
    name: str
    host: str

    def __str__(self) -> str:
        return f"put {self.host} into aggregate {self.name}"


@dataclass(frozen=True)
class RemoveHost(Change):
    """Take a host out of an aggregate."""

    name: str
    host: str

    def __str__(self) -> str:
        return f"take {self.host} out of aggregate {self.name}"


@dataclass(frozen=True)
class LeaveAggregate(RemoveHost):
    """Take a host out of an aggregate whose trait is another than the host's."""

    look_again = True


@dataclass(frozen=True)
class DeleteAggregate(Change):
    """Delete an aggregate that has no host."""

    name: str

    def __str__(self) -> str:
        return f"delete aggregate {self.name}, which has no host left"


@dataclass(frozen=True)
class SetProviderAggregates(Change):
    """Say in Placement what Nova says about a host's aggregates."""

    look_again = True
    uuid: str
    name: str
    aggregates: frozenset[str]

    def __str__(self) -> str:
        return f"set the aggregates of provider {self.name} as Nova has them"


@dataclass(frozen=True)
class SetService(Change):
    """Take a compute service out of service, or put it back."""

    look_again = True
    id: str
    host: str
    enabled: bool

    def __str__(self) -> str:
        return f"{'enable' if self.enabled else 'disable'} nova-compute on {self.host}"


@dataclass(frozen=True)
class CreateChild(Change):
    """Create a child provider, which has nothing yet."""

    parent: str
    uuid: str
    name: str

    def __str__(self) -> str:
        return f"create provider {self.name}"


@dataclass(frozen=True)
class SetTraits(Change):
    """Return a provider exactly these traits.

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
    """Return a provider exactly these inventories; none if it is to be deleted."""

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
    """Delete a child provider that nothing is allocated of."""

    uuid: str
    name: str

    def __str__(self) -> str:
        return f"delete provider {self.name}"


@dataclass(frozen=True)
class AddUnits(Change):
    """Add units to what a running server has, and leave the rest as it is.

    :ivar units: by provider
    """

    look_again = True
    server: str
    name: str
    units: Mapping[str, int]

    def __str__(self) -> str:
        amounts = " + ".join(str(amount) for amount in self.units.values())
        return f"add {amounts} units to the allocation of {self.name}"


@dataclass(frozen=True)
class Allocate(Change):
    """Allocate to a running server what Placement has lost, units and all.

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
    """Take the units out of what a consumer has, and leave the rest as it is.

    :ivar providers: those of which it holds units
    """

    look_again = True
    consumer: str
    name: str
    providers: frozenset[str]

    def __str__(self) -> str:
        return f"take the units out of the allocation of {self.name}"


@dataclass(frozen=True)
class Plan:
    """What is to be done, in this order, or why nothing is.

    :ivar refusals: each names what is in the way and the remedy
    """

    changes: tuple[Change, ...] = ()
    refusals: tuple[str, ...] = ()
