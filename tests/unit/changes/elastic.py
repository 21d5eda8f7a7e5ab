# SPDX-License-Identifier: Apache-2.0
"""Hosts that are to be elastic, as snapshots show them and steps change them."""

import dataclasses

from nova_perfvm import constants as const
from nova_perfvm.changes.steps import with_changes
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.facts.snapshot import (
    ComputeHost,
    Inventory,
    Provider,
    Server,
    Snapshot,
    isolating,
)
from nova_perfvm.policy import HostShape, loader

POLICY = dataclasses.replace(loader.load(), placement="units")
# Four children: the policy has grown, or was another one before.
WIDE = HostShape.parse("4x20")
FOUR = dataclasses.replace(
    POLICY,
    host_shapes=(HostShape.parse("2x20"), WIDE),
    classes=tuple(
        dataclasses.replace(c, max_per_host=4) if c.pinned else c
        for c in POLICY.classes
    ),
)
LABELLED = dataclasses.replace(POLICY, managed_hosts="labelled")
FOUR_TRAIT = f"{const.TRAIT_ELASTIC}_4"
TRAIT = f"{const.TRAIT_ELASTIC}_2"
ISOLATING = isolating(TRAIT)
AGGREGATE = "perfvm-elastic-2"
ROOT = "00000000-0000-0000-0000-000000000001"
CLASS = {"perfvm:class": "high-performance"}


def server(name, vcpus=2, *, pinned=False, **extra_specs):
    return Server(name, name, "h1", "ACTIVE", vcpus, extra_specs, pinned=pinned)


def high(name):
    return dataclasses.replace(server(name, 20, pinned=True), extra_specs=CLASS)


def view(
    *servers, host="h1", total=40, resource="VCPU", service=(), others=(), **facts
):
    """Return a host as it is before anything was done, with these servers.

    :param service: what its compute host has of its service
    :param others: more providers
    :param facts: of the snapshot
    """
    shape = facts.pop("shape", None)
    root = Provider(
        ROOT,
        host,
        1,
        {resource: Inventory(total, total)},
        frozenset({"COMPUTE_NODE"}),
        {s.id: {resource: s.vcpus} for s in servers},
        root=ROOT,
    )
    compute = ComputeHost(host, host, ROOT, "s1", shape=shape, **dict(service))
    seen = Snapshot(
        "", hosts=(compute,), providers=(root, *others), servers=servers, **facts
    )
    return view_of(seen, host)


def having(seen, **facts):
    """Return a host of a cloud that differs in some facts."""
    return view_of(dataclasses.replace(seen.cloud, **facts), seen.host)


def damaged(seen, uuid, **facts):
    """Return a host of a cloud in which one provider differs."""
    return having(
        seen,
        providers=tuple(
            dataclasses.replace(p, **facts) if p.uuid == uuid else p
            for p in seen.cloud.providers
        ),
    )


def after(seen, *changes):
    """Return a host when some changes were made."""
    return view_of(with_changes(seen.cloud, changes), seen.host)


def in_order(seen):
    """Return a host's cloud with its parts in an order that does not matter."""
    aggregates = (dataclasses.replace(a, id=0) for a in seen.cloud.aggregates)
    return dataclasses.replace(
        seen.cloud,
        providers=tuple(sorted(seen.cloud.providers, key=lambda p: p.name)),
        aggregates=tuple(sorted(aggregates, key=lambda a: a.name)),
    )
