# SPDX-License-Identifier: Apache-2.0
"""The steps by which a cloud is changed, and what each does to a snapshot of one.

A run may end after any of them, and every run decides by what it sees, not by what an
earlier one did.  So a step that is taken twice, or that another run takes meanwhile,
must do no harm.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from nova_perfvm import constants as const
from nova_perfvm.facts.placement_request import elastic_traits
from nova_perfvm.facts.snapshot import (
    CREATED,
    DISABLED_REASON,
    Aggregate,
    Inventory,
    Provider,
    Snapshot,
    isolating,
)
from nova_perfvm.placement.candidates import DISABLED

# Of aggregates that there are in no cloud.
_NAMESPACE: Final = uuid.UUID("6f0d5c1e-64b7-4b3a-9d0b-0f1f0c8a8f5d")


def with_changes(seen: Snapshot, changes: Iterable[Change]) -> Snapshot:
    """Return a cloud when changes have been made to it.

    What Nova does by itself then, it has done, too: a host's provider is in the
    aggregates of the host, and has a trait while the host is disabled.  Generations
    are left as they are.

    :raises ValueError: when Placement would refuse a change
    """
    for change in changes:
        seen = change.made(seen)
    return seen


@dataclass(frozen=True)
class Change:
    """One step.

    :cvar words: what it does, with fields of the step
    :cvar look_again: whether to plan again after this step, because later steps
        depend on what Nova changes meanwhile
    """

    words: ClassVar[str]
    look_again: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.words.format(self)

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud after the step; see :func:`with_changes`."""
        raise NotImplementedError(repr(self))


@dataclass(frozen=True)
class CreateName(Change):
    """Make a trait or resource class known to Placement."""

    words = "create {0.kind} {0.name}"
    action = "create"
    detail = ""
    name: str
    kind: str

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud in which Placement knows it."""
        return replace(seen, names=seen.names | {self.name})


@dataclass(frozen=True)
class DeleteName(Change):
    """Delete a trait or resource class from Placement, unless it is in use."""

    words = "delete {0.kind} {0.name}, unless it is in use"
    name: str
    kind: str

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud in which it is gone, or the same."""
        if any(self.name in {*p.traits, *p.inventories} for p in seen.providers):
            return seen
        return replace(seen, names=seen.names - {self.name})


@dataclass(frozen=True)
class CreateAggregate(Change):
    """Create an aggregate, without metadata and hosts."""

    words = "create aggregate {0.name}"
    name: str

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud with one more aggregate."""
        made = Aggregate(
            id=1 + max((a.id for a in seen.aggregates), default=0),
            uuid=str(uuid.uuid5(_NAMESPACE, self.name)),
            name=self.name,
            metadata={},
            hosts=frozenset(),
        )
        return replace(seen, aggregates=(*seen.aggregates, made))


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

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud in which the aggregate has the metadata."""
        (found,) = (a for a in seen.aggregates if a.name == self.name)
        metadata = {**found.metadata, **self.metadata}
        return _with_aggregate(seen, replace(found, metadata=metadata))


@dataclass(frozen=True)
class _Membership(Change):
    """A change of the hosts of an aggregate."""

    look_again = True
    member: ClassVar[bool]
    name: str
    host: str

    def made(self, seen: Snapshot) -> Snapshot:
        """Return the cloud with the host in, or out of, the aggregate.

        In Nova as well as in Placement.
        """
        (found,) = (a for a in seen.aggregates if a.name == self.name)
        hosts = found.hosts - {self.host} | ({self.host} if self.member else set())
        seen = _with_aggregate(seen, replace(found, hosts=hosts))
        for host in seen.hosts:
            if host.host == self.host:
                provider = seen.provider_by_uuid[host.provider]
                known = provider.aggregates - {found.uuid}
                known |= {found.uuid} if self.member else set()
                seen = _with(seen, host.provider, aggregates=known)
        return seen


@dataclass(frozen=True)
class AddHost(_Membership):
    """Put a host into an aggregate."""

    words = "put {0.host} into aggregate {0.name}"
    member = True


@dataclass(frozen=True)
class RemoveHost(_Membership):
    """Take a host out of an aggregate."""

    words = "take {0.host} out of aggregate {0.name}"
    member = False


@dataclass(frozen=True)
class DeleteAggregate(Change):
    """Delete an aggregate that has no host."""

    words = "delete aggregate {0.name}, which has no host left"
    name: str

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud without the aggregate."""
        kept = tuple(a for a in seen.aggregates if a.name != self.name)
        return replace(seen, aggregates=kept)


@dataclass(frozen=True)
class _OfProvider(Change):
    """A change of one provider."""

    uuid: str
    name: str


@dataclass(frozen=True)
class SetProviderAggregates(_OfProvider):
    """Put a host's provider into the aggregates of its host."""

    words = "set the aggregates of provider {0.name} as Nova has them"
    look_again = True
    aggregates: frozenset[str]

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud with these aggregates on the provider."""
        return _with(seen, self.uuid, aggregates=self.aggregates)


@dataclass(frozen=True)
class SetService(Change):
    """Disable a compute service, or enable it again."""

    look_again = True
    id: str
    host: str
    enabled: bool

    def __str__(self) -> str:
        return f"{'enable' if self.enabled else 'disable'} nova-compute on {self.host}"

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud with the service enabled or disabled, the trait to match."""
        reason = None if self.enabled else DISABLED_REASON
        status = frozenset() if self.enabled else frozenset({DISABLED})
        mine = [host for host in seen.hosts if host.service == self.id]
        for host in mine:
            traits = seen.provider_by_uuid[host.provider].traits - {DISABLED}
            seen = _with(seen, host.provider, traits=traits | status)
        changed = {
            host.provider: replace(host, enabled=self.enabled, disabled_reason=reason)
            for host in mine
        }
        hosts = tuple(changed.get(host.provider, host) for host in seen.hosts)
        return replace(seen, hosts=hosts)


@dataclass(frozen=True)
class CreateChild(_OfProvider):
    """Create a child provider without inventories and traits."""

    words = "create provider {0.name}"
    parent: str

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud with one more provider."""
        made = Provider(self.uuid, self.name, 0)
        seen = replace(seen, providers=(*seen.providers, made))
        return _with(seen, self.uuid, **_below(seen, self.parent))


@dataclass(frozen=True)
class AdoptChild(_OfProvider):
    """Attach a provider that an earlier run has detached to a host's tree."""

    words = "put provider {0.name} back into the host's tree"
    parent: str

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud in which it is in the tree."""
        return _with(seen, self.uuid, **_below(seen, self.parent))


@dataclass(frozen=True)
class DetachChild(_OfProvider):
    """Take an empty child provider out of its host's tree.

    It is not deleted: nova-compute keeps the tree in a cache, and its updates fail
    while a provider that the cache has does not exist.  One that exists outside of
    the tree makes nothing fail.
    """

    words = "take provider {0.name}, which is empty, out of the host's tree"

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud in which it is the top of a tree of its own."""
        seen = _with(seen, self.uuid, parent=None, root=self.uuid)
        if not seen.provider_by_uuid[self.uuid].detached:
            raise ValueError(f"{self.name} is not empty")
        return seen


@dataclass(frozen=True)
class SetTraits(_OfProvider):
    """Set all traits of a provider."""

    traits: frozenset[str]
    before: frozenset[str] = frozenset()

    @property
    def opens(self) -> bool:
        """Whether VMs with units may come from now on."""
        return bool(elastic_traits(self.traits))

    def __str__(self) -> str:
        added = [f"+{trait}" for trait in sorted(self.traits - self.before)]
        removed = [f"-{trait}" for trait in sorted(self.before - self.traits)]
        return f"set traits of provider {self.name}: {' '.join(added + removed)}"

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud with these traits on the provider."""
        return _with(seen, self.uuid, traits=self.traits)


@dataclass(frozen=True)
class SetInventory(_OfProvider):
    """Set all inventories of a provider; none if it is to be detached."""

    inventories: Mapping[str, Inventory]

    def __str__(self) -> str:
        if not self.inventories:
            return f"empty provider {self.name}"
        text = ", ".join(
            f"{name} {inventory.total}, at most {inventory.max_unit} a VM"
            for name, inventory in self.inventories.items()
        )
        return f"set inventory of provider {self.name}: {text}"

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud with these inventories of the provider."""
        if seen.provider_by_uuid[self.uuid].allocations and not self.inventories:
            raise ValueError(f"{self.name} is in use")
        return _with(seen, self.uuid, inventories=dict(self.inventories))


@dataclass(frozen=True)
class DeleteChild(_OfProvider):
    """Delete a provider that was a child, when no nova-compute knows it any more."""

    words = "delete provider {0.name}, which is empty"

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud without it."""
        if not seen.provider_by_uuid[self.uuid].detached:
            raise ValueError(f"nova-compute may know {self.name}")
        kept = tuple(p for p in seen.providers if p.uuid != self.uuid)
        return replace(seen, providers=kept)


@dataclass(frozen=True)
class Allocate(Change):
    """Add to the allocation of a running server what it lacks.

    :ivar resources: amounts by provider and resource class
    :ivar elsewhere: other hosts by provider of theirs, of which it is to hold nothing
        any more
    """

    look_again = True
    server: str
    name: str
    resources: Mapping[str, Mapping[str, int]]
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        amounts = [
            f"{amount} {name}"
            for resources in self.resources.values()
            for name, amount in sorted(resources.items())
        ]
        others = sorted({*self.elsewhere.values()})
        away = f" instead of what it holds of {', '.join(others)}" if others else ""
        return f"allocate {', '.join(amounts)} to {self.name}{away}"

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud in which it has all that, too."""
        for provider, resources in self.resources.items():
            held = seen.provider_by_uuid[provider].allocations
            more = Counter(held.get(self.server, {}))
            more.update(resources)
            allocations = {**held, self.server: dict(more)}
            seen = _with(seen, provider, allocations=allocations)
        return seen


@dataclass(frozen=True)
class RemoveUnits(Change):
    """Remove the units from a consumer's allocation, and leave the rest as it is.

    :ivar providers: the providers whose units are removed
    :ivar noun: what these are
    """

    words = "take the {0.noun} out of the allocation of {0.name}"
    look_again = True
    consumer: str
    name: str
    providers: frozenset[str]
    noun: str

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud without the units."""
        for provider in self.providers:
            found = seen.provider_by_uuid[provider]
            kept = dict(found.allocations.get(self.consumer, {}))
            kept = {k: v for k, v in kept.items() if k not in const.CHILD_CLASSES}
            rest = found.without({self.consumer}).allocations
            allocations = {**rest, **({self.consumer: kept} if kept else {})}
            seen = _with(seen, provider, allocations=allocations)
        return seen


@dataclass(frozen=True)
class Realign(Change):
    """Let servers of a host hold other child providers of it, all at once.

    :ivar names: of the servers, by ID
    :ivar resources: what each is to hold of the host's children, by provider's UUID
    """

    look_again = True
    host: str
    names: Mapping[str, str]
    resources: Mapping[str, Mapping[str, Mapping[str, int]]]

    def __str__(self) -> str:
        servers = ", ".join(self.names.values())
        return f"let these hold the child providers that Nova runs them on: {servers}"

    def made(self, seen: Snapshot) -> Snapshot:
        """Return a cloud in which they hold these, and no other child's.

        :raises ValueError: when a provider has not as much
        """
        for server, wanted in self.resources.items():
            for provider in seen.providers:
                held = provider.allocations.get(server, {})
                rest = {k: v for k, v in held.items() if k not in const.CHILD_CLASSES}
                mine = rest | dict(wanted.get(provider.uuid, {}))
                if mine != held:
                    others = provider.without({server}).allocations
                    allocations = {**others, **({server: mine} if mine else {})}
                    seen = _with(seen, provider.uuid, allocations=allocations)
        for uuid_ in {p for wanted in self.resources.values() for p in wanted}:
            if any(seen.provider_by_uuid[uuid_].overused()):
                raise ValueError(f"{seen.provider_by_uuid[uuid_].name} is too small")
        return seen


def _below(seen: Snapshot, which: str) -> dict[str, str]:
    """Return what says that a provider is below another one."""
    parent = seen.provider_by_uuid[which]
    return {"parent": parent.uuid, "root": parent.root or parent.uuid}


def _with(seen: Snapshot, which: str, **facts: Any) -> Snapshot:
    """Return a cloud in which some facts of a provider are others."""
    providers = (replace(p, **facts) if p.uuid == which else p for p in seen.providers)
    return replace(seen, providers=tuple(providers))


def _with_aggregate(seen: Snapshot, changed: Aggregate) -> Snapshot:
    aggregates = (changed if a.id == changed.id else a for a in seen.aggregates)
    return replace(seen, aggregates=tuple(aggregates))


@dataclass(frozen=True)
class Left:
    """What is left as it is, and why."""

    action = "leave"
    kind: str
    name: str
    detail: str


@dataclass(frozen=True)
class Plan:
    """What is to be done, in this order, or why nothing is.

    :ivar refusals: each names what is in the way and the remedy
    :ivar left: what is as it should be, is not this policy's, or cannot be changed now
    """

    changes: tuple[Change, ...] = ()
    refusals: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
