# SPDX-License-Identifier: Apache-2.0
"""What a step does to a cloud, as a pure function of a snapshot of one."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import singledispatch
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.changes import steps as do
from nova_perfvm.facts.snapshot import DISABLED_REASON, Aggregate, Provider, Snapshot
from nova_perfvm.placement.candidates import DISABLED

# Of aggregates that there are in no cloud.
_NAMESPACE: Final = uuid.UUID("6f0d5c1e-64b7-4b3a-9d0b-0f1f0c8a8f5d")


def with_changes(snapshot: Snapshot, changes: Iterable[do.Change]) -> Snapshot:
    """Return a cloud when changes have been made to it.

    What Nova does by itself then, it has done, too: a host's provider is in the
    aggregates of the host, and has a trait while the host is disabled.  Generations
    are left as they are.

    :raises ValueError: when Placement would refuse a change
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
def _(change: do.DeleteName, snapshot: Snapshot) -> Snapshot:
    used = any(
        change.name in p.traits or change.name in p.inventories
        for p in snapshot.providers
    )
    return snapshot if used else replace(snapshot, names=snapshot.names - {change.name})


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
def _(change: do.SetService, snapshot: Snapshot) -> Snapshot:
    reason = None if change.enabled else DISABLED_REASON
    status = frozenset() if change.enabled else frozenset({DISABLED})
    before = {h.provider for h in snapshot.hosts if h.service == change.id}
    for provider in before:
        snapshot = _with_provider(
            snapshot,
            provider,
            lambda found: replace(found, traits=found.traits - {DISABLED} | status),
        )
    hosts = tuple(
        replace(host, enabled=change.enabled, disabled_reason=reason)
        if host.provider in before
        else host
        for host in snapshot.hosts
    )
    return replace(snapshot, hosts=hosts)


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
    if snapshot.provider_by_uuid[change.uuid].allocations and not change.inventories:
        raise ValueError(f"{change.name} is in use")
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
    detached = replace(
        snapshot.provider_by_uuid[change.uuid], parent=None, root=change.uuid
    )
    if not detached.detached:
        raise ValueError(f"{change.name} is not empty")
    return _with_provider(snapshot, change.uuid, lambda _: detached)


@_made.register
def _(change: do.DeleteChild, snapshot: Snapshot) -> Snapshot:
    if not snapshot.provider_by_uuid[change.uuid].detached:
        raise ValueError(f"nova-compute may know {change.name}")
    kept = tuple(p for p in snapshot.providers if p.uuid != change.uuid)
    return replace(snapshot, providers=kept)


@_made.register(do.AddUnits)
@_made.register(do.Allocate)
def _(change: do.AddUnits | do.Allocate, snapshot: Snapshot) -> Snapshot:
    def more(found: Provider) -> Provider:
        held = Counter(found.allocations.get(change.server, {}))
        held.update(change.resources[found.uuid])
        return replace(
            found, allocations={**found.allocations, change.server: dict(held)}
        )

    for provider in change.resources:
        snapshot = _with_provider(snapshot, provider, more)
    return snapshot


@_made.register
def _(change: do.RemoveUnits, snapshot: Snapshot) -> Snapshot:
    def less(found: Provider) -> Provider:
        kept = dict(found.allocations.get(change.consumer, {}))
        kept.pop(const.RC_UNIT, None)
        rest = found.without({change.consumer})
        if not kept:
            return rest
        return replace(rest, allocations={**rest.allocations, change.consumer: kept})

    for provider in change.providers:
        snapshot = _with_provider(snapshot, provider, less)
    return snapshot


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
