# SPDX-License-Identifier: Apache-2.0
"""Steps that are otherwise made to a cloud, made to a snapshot of one."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import singledispatch
from typing import Final

from nova_perfvm.changes import steps as do
from nova_perfvm.facts.snapshot import Aggregate, Provider, Snapshot

# Of aggregates that there are in no cloud.
_NAMESPACE: Final = uuid.UUID("6f0d5c1e-64b7-4b3a-9d0b-0f1f0c8a8f5d")


def with_changes(snapshot: Snapshot, changes: Iterable[do.Change]) -> Snapshot:
    """Return a cloud when changes have been made to it.

    What Nova does by itself then, it has done, too: a host's provider is in the
    aggregates of the host.
    """
    for change in changes:
        snapshot = _made(change, snapshot)
    return snapshot


@singledispatch
def _made(change: do.Change, _snapshot: Snapshot) -> Snapshot:
    raise NotImplementedError(repr(change))


@_made.register
def _(change: do.CreateName, snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, names=snapshot.names | {change.name})


@_made.register
def _(change: do.CreateAggregate, snapshot: Snapshot) -> Snapshot:
    made = Aggregate(
        id=1 + max((a.id for a in snapshot.aggregates), default=0),
        uuid=str(uuid.uuid5(_NAMESPACE, change.name)),
        name=change.name,
        metadata={},
        hosts=frozenset(),
    )
    return replace(snapshot, aggregates=(*snapshot.aggregates, made))


@_made.register
def _(change: do.IsolateAggregate, snapshot: Snapshot) -> Snapshot:
    return _with_aggregate(
        snapshot,
        change.name,
        lambda found: replace(found, metadata={**found.metadata, **change.metadata}),
    )


@_made.register
def _(change: do.AddHost, snapshot: Snapshot) -> Snapshot:
    snapshot = _with_aggregate(
        snapshot,
        change.name,
        lambda found: replace(found, hosts=found.hosts | {change.host}),
    )
    return _mirrored(snapshot, change.name, change.host, member=True)


@_made.register
def _(change: do.RemoveHost, snapshot: Snapshot) -> Snapshot:
    # LeaveAggregate is one, too.
    snapshot = _with_aggregate(
        snapshot,
        change.name,
        lambda found: replace(found, hosts=found.hosts - {change.host}),
    )
    return _mirrored(snapshot, change.name, change.host, member=False)


@_made.register
def _(change: do.DeleteAggregate, snapshot: Snapshot) -> Snapshot:
    kept = tuple(a for a in snapshot.aggregates if a.name != change.name)
    return replace(snapshot, aggregates=kept)


@_made.register
def _(change: do.SetProviderAggregates, snapshot: Snapshot) -> Snapshot:
    return _with_provider(
        snapshot,
        change.uuid,
        lambda found: replace(found, aggregates=change.aggregates),
    )


@_made.register
def _(_change: do.SetService, snapshot: Snapshot) -> Snapshot:
    # For the time of the change only; the last step undoes it.
    return snapshot


@_made.register
def _(change: do.CreateChild, snapshot: Snapshot) -> Snapshot:
    parent = snapshot.provider_by_uuid[change.parent]
    made = Provider(
        uuid=change.uuid,
        name=change.name,
        generation=0,
        parent=change.parent,
        root=parent.root or parent.uuid,
    )
    return replace(snapshot, providers=(*snapshot.providers, made))


@_made.register
def _(change: do.SetTraits, snapshot: Snapshot) -> Snapshot:
    return _with_provider(
        snapshot, change.uuid, lambda found: replace(found, traits=change.traits)
    )


@_made.register
def _(change: do.SetInventory, snapshot: Snapshot) -> Snapshot:
    return _with_provider(
        snapshot,
        change.uuid,
        lambda found: replace(found, inventories=dict(change.inventories)),
    )


@_made.register
def _(change: do.AdoptChild, snapshot: Snapshot) -> Snapshot:
    parent = snapshot.provider_by_uuid[change.parent]
    return _with_provider(
        snapshot,
        change.uuid,
        lambda found: replace(
            found, parent=parent.uuid, root=parent.root or parent.uuid
        ),
    )


@_made.register
def _(change: do.DetachChild, snapshot: Snapshot) -> Snapshot:
    return _with_provider(
        snapshot,
        change.uuid,
        lambda found: replace(found, parent=None, root=found.uuid),
    )


@_made.register(do.AddUnits)
@_made.register(do.Allocate)
def _(change: do.AddUnits | do.Allocate, snapshot: Snapshot) -> Snapshot:
    for provider, resources in change.resources.items():
        snapshot = _allocated(snapshot, change.server, provider, dict(resources))
    return snapshot


@_made.register
def _(change: do.RemoveUnits, snapshot: Snapshot) -> Snapshot:
    for uuid_ in change.providers:
        snapshot = _with_provider(
            snapshot, uuid_, lambda found: found.without({change.consumer})
        )
    return snapshot


def _allocated(
    snapshot: Snapshot, consumer: str, provider: str, resources: dict[str, int]
) -> Snapshot:
    def more(found: Provider) -> Provider:
        held = {**resources, **found.allocations.get(consumer, {})}
        return replace(found, allocations={**found.allocations, consumer: held})

    return _with_provider(snapshot, provider, more)


def _with_provider(
    snapshot: Snapshot, uuid_: str, change: Callable[[Provider], Provider]
) -> Snapshot:
    return replace(
        snapshot,
        providers=tuple(
            change(p) if p.uuid == uuid_ else p for p in snapshot.providers
        ),
    )


def _with_aggregate(
    snapshot: Snapshot, name: str, change: Callable[[Aggregate], Aggregate]
) -> Snapshot:
    return replace(
        snapshot,
        aggregates=tuple(
            change(a) if a.name == name else a for a in snapshot.aggregates
        ),
    )


def _mirrored(snapshot: Snapshot, name: str, host: str, *, member: bool) -> Snapshot:
    """Let Placement know of a host's aggregate, as Nova does."""
    uuids = {a.uuid for a in snapshot.aggregates if a.name == name}
    for found in snapshot.hosts:
        if found.host == host:
            snapshot = _with_provider(
                snapshot,
                found.provider,
                lambda p: replace(
                    p,
                    aggregates=p.aggregates | uuids if member else p.aggregates - uuids,
                ),
            )
    return snapshot
