# SPDX-License-Identifier: Apache-2.0
"""The steps that change a cloud, and the effect of each step on a snapshot.

A run may end after any step, and every run plans from the cloud's present state, not
from the steps of an earlier run.  So a step must be harmless if it is made twice, or by
two runs at once.
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

# Namespace of UUIDs for aggregates that exist only in a supposed cloud.
_NAMESPACE: Final = uuid.UUID("6f0d5c1e-64b7-4b3a-9d0b-0f1f0c8a8f5d")


def with_changes(seen: Snapshot, changes: Iterable[Change]) -> Snapshot:
    """Return the snapshot after `changes` are applied.

    Nova's own reactions are applied, too: a host's provider is in the host's
    aggregates, and has the trait COMPUTE_STATUS_DISABLED while the host is disabled.
    Generations stay unchanged.

    :raises ValueError: when a provider is in use, is not empty or is too small
    """
    for change in changes:
        seen = change.made(seen)
    return seen


@dataclass(frozen=True)
class Change:
    """One step.

    :cvar words: describes the step, as a format with the step's fields
    :cvar look_again: whether to plan again after this step, because later steps depend
        on Nova's reaction to it
    """

    words: ClassVar[str]
    look_again: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.words.format(self)

    def made(self, seen: Snapshot) -> Snapshot:
        """Return the snapshot after the step; see :func:`with_changes`."""
        raise NotImplementedError(repr(self))


@dataclass(frozen=True)
class CreateName(Change):
    """Create a trait or resource class in Placement."""

    words = "create {0.kind} {0.name}"
    action = "create"
    detail = ""
    name: str
    kind: str

    def made(self, seen: Snapshot) -> Snapshot:
        return replace(seen, names=seen.names | {self.name})


@dataclass(frozen=True)
class DeleteName(Change):
    """Delete a trait or resource class from Placement, unless it is in use."""

    words = "delete {0.kind} {0.name}, unless it is in use"
    name: str
    kind: str

    def made(self, seen: Snapshot) -> Snapshot:
        """Return the snapshot without the name; unchanged if the name is in use."""
        if any(self.name in {*p.traits, *p.inventories} for p in seen.providers):
            return seen
        return replace(seen, names=seen.names - {self.name})


@dataclass(frozen=True)
class CreateAggregate(Change):
    """Create an aggregate, without metadata and hosts."""

    words = "create aggregate {0.name}"
    name: str

    def made(self, seen: Snapshot) -> Snapshot:
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
    """Keep requests that do not ask for a trait off the hosts of an aggregate.

    :ivar created: whether this run creates the aggregate
    :ivar label: the classes that its hosts are for; empty to set no label
    """

    name: str
    trait: str
    created: bool = False
    label: str = ""

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata to set on the aggregate."""
        found = isolating(self.trait)
        if self.label:
            found[const.CLASS_KEY] = self.label
        return found | (CREATED if self.created else {})

    def __str__(self) -> str:
        label = f" and {const.CLASS_KEY}={self.label}" if self.label else ""
        return f"set trait:{self.trait}=required{label} on aggregate {self.name}"

    def made(self, seen: Snapshot) -> Snapshot:
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
        """Return the snapshot with the host in, or out of, the aggregate.

        Both Nova's aggregate and the provider's aggregates in Placement change.
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
    """Delete an aggregate without hosts."""

    words = "delete aggregate {0.name}, which has no host left"
    name: str

    def made(self, seen: Snapshot) -> Snapshot:
        kept = tuple(a for a in seen.aggregates if a.name != self.name)
        return replace(seen, aggregates=kept)


@dataclass(frozen=True)
class _OfProvider(Change):
    """A change of one provider."""

    uuid: str
    name: str


@dataclass(frozen=True)
class SetProviderAggregates(_OfProvider):
    """Give a host's provider in Placement the aggregates that the host has in Nova."""

    words = "set the aggregates of provider {0.name} as Nova has them"
    look_again = True
    aggregates: frozenset[str]

    def made(self, seen: Snapshot) -> Snapshot:
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
        made = Provider(self.uuid, self.name, 0)
        seen = replace(seen, providers=(*seen.providers, made))
        return _with(seen, self.uuid, **_below(seen, self.parent))


@dataclass(frozen=True)
class AdoptChild(_OfProvider):
    """Attach a provider that an earlier run has detached to a host's tree."""

    words = "put provider {0.name} back into the host's tree"
    parent: str

    def made(self, seen: Snapshot) -> Snapshot:
        return _with(seen, self.uuid, **_below(seen, self.parent))


@dataclass(frozen=True)
class DetachChild(_OfProvider):
    """Take an empty child provider out of its host's tree.

    The provider is not deleted: nova-compute caches the tree, and its updates fail if a
    cached provider does not exist.  A provider that exists outside of the tree makes no
    update fail.
    """

    words = "take provider {0.name}, which is empty, out of the host's tree"

    def made(self, seen: Snapshot) -> Snapshot:
        """Return the snapshot with the provider as the root of its own tree."""
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
        """Whether VMs with units may come after this step."""
        return bool(elastic_traits(self.traits))

    def __str__(self) -> str:
        added = [f"+{trait}" for trait in sorted(self.traits - self.before)]
        removed = [f"-{trait}" for trait in sorted(self.before - self.traits)]
        return f"set traits of provider {self.name}: {' '.join(added + removed)}"

    def made(self, seen: Snapshot) -> Snapshot:
        return _with(seen, self.uuid, traits=self.traits)


@dataclass(frozen=True)
class SetInventory(_OfProvider):
    """Set all inventories of a provider; empty before it is detached."""

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
        if seen.provider_by_uuid[self.uuid].allocations and not self.inventories:
            raise ValueError(f"{self.name} is in use")
        return _with(seen, self.uuid, inventories=dict(self.inventories))


@dataclass(frozen=True)
class DeleteChild(_OfProvider):
    """Delete a detached child, when no nova-compute knows it any more."""

    words = "delete provider {0.name}, which is empty"

    def made(self, seen: Snapshot) -> Snapshot:
        if not seen.provider_by_uuid[self.uuid].detached:
            raise ValueError(f"nova-compute may know {self.name}")
        kept = tuple(p for p in seen.providers if p.uuid != self.uuid)
        return replace(seen, providers=kept)


@dataclass(frozen=True)
class Allocate(Change):
    """Add to a running server's allocation the resources that it lacks.

    :ivar resources: {UUID of a provider: {resource class: amount to add}}
    :ivar elsewhere: {UUID of a provider: its host} of other hosts, whose part of the
        allocation is dropped
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
        away = f" instead of its allocation on {', '.join(others)}" if others else ""
        return f"allocate {', '.join(amounts)} to {self.name}{away}"

    def made(self, seen: Snapshot) -> Snapshot:
        """Return the snapshot with the resources added to the server's allocation."""
        for provider, resources in self.resources.items():
            held = seen.provider_by_uuid[provider].allocations
            more = Counter(held.get(self.server, {}))
            more.update(resources)
            allocations = {**held, self.server: dict(more)}
            seen = _with(seen, provider, allocations=allocations)
        return seen


@dataclass(frozen=True)
class RemoveUnits(Change):
    """Remove the units from a consumer's allocation, and keep the rest.

    :ivar providers: UUIDs of the providers whose units are removed
    :ivar noun: the scheme's word for the units
    """

    words = "take the {0.noun} out of the allocation of {0.name}"
    look_again = True
    consumer: str
    name: str
    providers: frozenset[str]
    noun: str

    def made(self, seen: Snapshot) -> Snapshot:
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
    """Change the child providers that servers of a host hold, all in one request.

    :ivar names: names of the servers, by ID
    :ivar resources: {ID of a server: {UUID of a child: the amounts to hold}}
    """

    look_again = True
    host: str
    names: Mapping[str, str]
    resources: Mapping[str, Mapping[str, Mapping[str, int]]]

    def __str__(self) -> str:
        servers = ", ".join(self.names.values())
        return f"move allocations to the child providers that Nova uses: {servers}"

    def made(self, seen: Snapshot) -> Snapshot:
        """Return the snapshot in which servers hold these children and no others.

        :raises ValueError: when a provider has too little capacity
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
    """Return the fields of a provider that is below another provider."""
    parent = seen.provider_by_uuid[which]
    return {"parent": parent.uuid, "root": parent.root or parent.uuid}


def _with(seen: Snapshot, which: str, **facts: Any) -> Snapshot:
    """Return the snapshot with some fields of a provider replaced."""
    providers = (replace(p, **facts) if p.uuid == which else p for p in seen.providers)
    return replace(seen, providers=tuple(providers))


def _with_aggregate(seen: Snapshot, changed: Aggregate) -> Snapshot:
    aggregates = (changed if a.id == changed.id else a for a in seen.aggregates)
    return replace(seen, aggregates=tuple(aggregates))


@dataclass(frozen=True)
class Left:
    """An object that stays unchanged, with the reason."""

    action = "leave"
    kind: str
    name: str
    detail: str


@dataclass(frozen=True)
class Plan:
    """The changes to make, in this order, or the reasons why none is made.

    :ivar refusals: the obstacles, each with its remedy
    :ivar left: objects that are right already, do not belong to the policy, or cannot
        be changed now
    """

    changes: tuple[Change, ...] = ()
    refusals: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
