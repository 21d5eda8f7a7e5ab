# SPDX-License-Identifier: Apache-2.0
"""What a snapshot has of elastic hosts, as plans and preflight look at it."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from nova_perfvm.facts.elastic_host import (
    ComputeService,
    ElasticHost,
    describe_consumer,
)
from nova_perfvm.facts.snapshot import ComputeHost, Provider, Snapshot
from nova_perfvm.placement.schemes import child_names


class ElasticHosts(NamedTuple):
    """The hosts of a cloud that are elastic, or are to be.

    :ivar stray: name and trait of enrolled providers that are no compute host's
    """

    hosts: tuple[ElasticHost, ...]
    stray: tuple[tuple[str, str], ...]


def elastic_hosts(
    snapshot: Snapshot, wanted: Collection[str] = frozenset()
) -> ElasticHosts:
    """Return the hosts that are enrolled, if only in part, and some others.

    :param wanted: names of the others, or of their nodes
    """
    views = [view for host in snapshot.hosts if (view := host_view(snapshot, host))]
    roots = {view.root.uuid for view in views}
    return ElasticHosts(
        hosts=tuple(
            view
            for view in views
            if view.enrolled
            or view.children
            or view.isolated_by
            or view.host in wanted
            or view.root.name in wanted
        ),
        stray=tuple(
            (provider.name, trait)
            for provider in snapshot.providers
            if provider.uuid not in roots and snapshot.is_seen(provider)
            for trait in sorted(provider.elastic_traits)
        ),
    )


def host_view(snapshot: Snapshot, host: ComputeHost) -> ElasticHost | None:
    """Return one host; None if Placement has no provider of it."""
    root = snapshot.provider_by_uuid.get(host.provider)
    if root is None:
        return None
    below = tuple(p for p in snapshot.trees[root.uuid] if p.uuid != root.uuid)
    servers = tuple(
        sorted(snapshot.servers_by_host.get(host.host, ()), key=lambda s: s.id)
    )
    detached, strayed, elsewhere = _outside(snapshot, root)
    view = ElasticHost(
        host=host.host,
        service=ComputeService(host.service, host.enabled, host.disabled_reason),
        root=root,
        below=below,
        detached=detached,
        strayed=strayed,
        elsewhere=elsewhere,
        servers=servers,
        aggregates=snapshot.aggregates,
        names=snapshot.names,
        shape=host.shape,
    )
    here = {server.id for server in servers}
    others = {c for p in (root, *view.children) for c in p.allocations} - here
    return replace(
        view,
        consumers={
            consumer: describe_consumer(consumer, snapshot.server_by_id.get(consumer))
            for consumer in others
        },
    )


def _outside(
    snapshot: Snapshot, root: Provider
) -> tuple[tuple[Provider, ...], tuple[Provider, ...], dict[str, str]]:
    """Return what has a child's name outside the tree: see ElasticHost."""
    names = set(child_names(root.name))
    found = [p for p in snapshot.providers if p.name in names and p.root != root.uuid]
    return (
        tuple(p for p in found if p.detached),
        tuple(p for p in found if p.parent is None and not p.detached),
        {p.name: p.uuid for p in found if p.parent is not None},
    )
