# SPDX-License-Identifier: Apache-2.0
"""A compute host with its facts, providers, aggregates and servers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from shlex import quote
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.facts import HostFacts
from nova_perfvm.facts.children import child_uuid
from nova_perfvm.facts.snapshot import (
    Aggregate,
    ComputeHost,
    Provider,
    Server,
    Snapshot,
    host_facts,
)
from nova_perfvm.facts.snapshot.pci import returned

SHARING = "MISC_SHARES_VIA_AGGREGATE"
_NO_CLOUD: Final = Snapshot("")


@dataclass(frozen=True)
class HostView:
    """One compute host, as a snapshot shows it or after supposed changes.

    :ivar compute: the host's compute node and service
    :ivar facts: the facts for the rules
    :ivar tree: the host's resource providers, the root first; empty if it has none
    :ivar sharing: providers that share their resources with the host
    :ivar aggregates: Nova's aggregates with the host
    :ivar isolating: aggregates that require a trait, and of which Placement has the
        host's root provider as a member
    :ivar cloud: the snapshot of the host's cloud
    """

    compute: ComputeHost
    facts: HostFacts
    tree: tuple[Provider, ...] = ()
    sharing: tuple[Provider, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    isolating: tuple[Aggregate, ...] = ()
    servers: tuple[Server, ...] = ()
    cloud: Snapshot = field(default=_NO_CLOUD, repr=False, compare=False)

    @property
    def ratios(self) -> dict[str, float]:
        """{resource class: allocation ratio} of the root; empty without a tree."""
        found = self.root.inventories if self.tree else {}
        return {name: inventory.allocation_ratio for name, inventory in found.items()}

    @property
    def host(self) -> str:
        """The name of the host's compute service."""
        return self.compute.host

    @property
    def name(self) -> str:
        """The host's name, with the name of its node if that differs."""
        host, node = self.compute.host, self.compute.node
        return host if host == node else f"{host} ({node})"

    @property
    def state(self) -> str:
        """The state of the compute service: ``up`` or ``down``, and ``disabled``."""
        state = "up" if self.compute.up else "down"
        return state if self.compute.enabled else f"{state}, disabled"

    @property
    def root(self) -> Provider:
        """The provider of the compute node; raises IndexError without a tree."""
        return self.tree[0]

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The providers that may give resources to a VM on the host."""
        return self.tree + self.sharing

    @cached_property
    def children(self) -> tuple[Provider, ...]:
        """The child providers that enrolling makes, known by inventory or by name.

        Outside the tree, only ``strayed`` count.  Raises IndexError without a tree.
        """
        prefix = f"{self.root.name}_perfvm_"
        return tuple(
            provider
            for provider in (*self.tree[1:], *self.strayed)
            if provider.name.startswith(prefix)
            or const.CHILD_CLASSES & provider.inventories.keys()
        )

    @cached_property
    def _outside(self) -> tuple[Provider, ...]:
        """Providers outside the tree whose names are those of the host's children."""
        named = self.cloud.children_by_host.get(self.root.name, ())
        return tuple(p for p in named if p.root != self.root.uuid)

    def is_own(self, child: Provider) -> bool:
        """Return whether a child was made for the host's present root provider.

        A reinstalled host has a new root provider, from whose UUID the UUIDs of its
        children follow; nova-scheduler knows the NUMA nodes of candidates by these.
        """
        return child.uuid == child_uuid(self.root.uuid, child.name)

    @property
    def detached(self) -> tuple[Provider, ...]:
        """Empty children that an earlier run has removed from the tree."""
        return tuple(p for p in self._outside if p.detached)

    @property
    def strayed(self) -> tuple[Provider, ...]:
        """Children without a parent, but with inventories, traits or consumers."""
        return tuple(p for p in self._outside if p.parent is None and not p.detached)

    @property
    def elsewhere(self) -> dict[str, str]:
        """{name: UUID} of providers with children's names in trees of other roots."""
        return {p.name: p.uuid for p in self._outside if p.parent is not None}

    @property
    def enrolled(self) -> bool:
        """Return whether the host has a trait of enrolled hosts, or an outdated one."""
        return bool(self.tree and self.root.elastic_traits)

    @property
    def isolated_by(self) -> tuple[Aggregate, ...]:
        """The host's aggregates in Nova that keep VMs without units off the host."""
        return tuple(a for a in self.aggregates if a.isolates)

    @property
    def closed(self) -> bool:
        """Return whether Placement, too, has the host in one of ``isolated_by``."""
        return any(a.uuid in self.root.aggregates for a in self.isolated_by)

    def in_zone(self, zone: str) -> bool:
        """Return whether Nova finds the host in an availability zone.

        For the zone Nova asks Placement for root providers in an aggregate that makes
        it (``map_az_to_placement_aggregate`` of nova.scheduler.request_filter), and
        does not ask which hosts Nova itself has there.  The zone in Nova counts where
        no aggregate is known to make it.
        """
        making = self.cloud.aggregates_by_zone.get(zone)
        if making and self.tree:
            return not making.isdisjoint(self.root.aggregates)
        return zone == self.compute.availability_zone

    @property
    def remains(self) -> tuple[str, ...]:
        """A message with the remedy if a cut-off enroll left nova-compute disabled."""
        if not self.compute.interrupted:
            return ()
        cause = f"nova-compute on {self.host} is disabled since an enroll was cut off"
        enable = "openstack compute service set --enable"
        return (f"{cause}: {enable} {quote(self.host)} nova-compute",)

    def describe(self, consumer: str) -> str:
        """Return a consumer of the host's providers in words, for messages."""
        server = self.cloud.server_by_id.get(consumer)
        if server is None:
            return f"consumer {consumer} (a migration or what is left of one)"
        if server.host == self.host:
            return str(server)
        if server.host:
            return f"{server.name} ({server.id}, which Nova has on {server.host})"
        return f"{server.name} ({server.id}, which is on no host yet)"

    def without(self, servers: Collection[Server]) -> HostView:
        """Return the host after these servers have left."""
        gone = {server.id for server in servers}
        pins = {cpu for server in servers for cpu in server.pinned_cpus}
        memory_mb: dict[int | None, int] = {}
        vcpus: dict[int | None, int] = {}
        pages: dict[tuple[int | None, int], int] = {}
        for server in servers:
            for found in server.cells or ():
                node, size_kb = found.host_node, server.page_size_kb
                memory_mb[node] = memory_mb.get(node, 0) + found.memory_mb
                vcpus[node] = vcpus.get(node, 0) + found.shared_vcpus
                if size_kb:
                    number = found.memory_mb * 1024 // size_kb
                    pages[node, size_kb] = pages.get((node, size_kb), 0) + number
        cells = [
            cell._replace(
                pinned_cpus=cell.pinned_cpus - pins,
                memory_usage_mb=cell.memory_usage_mb - memory_mb.get(cell.id, 0),
                cpu_usage=cell.cpu_usage - vcpus.get(cell.id, 0),
                mempages=tuple(
                    pool._replace(
                        used=pool.used - pages.get((cell.id, pool.size_kb), 0)
                    )
                    for pool in cell.mempages
                ),
            )
            for cell in self.facts.cells
        ]
        facts = self.facts._replace(
            cells=cells,
            vcpus_used=self.facts.vcpus_used - sum(s.vcpus for s in servers),
            num_instances=self.facts.num_instances - len(servers),
            unpinned=self.facts.unpinned - sum(not s.owns_cpus for s in servers),
        )
        freed = [device for server in servers for device in server.pci_devices]
        compute = self.compute
        if freed:
            pools = returned(compute.pci_pools or (), freed)
            compute = replace(compute, pci_pools=pools)
        return replace(
            self,
            compute=compute,
            facts=facts,
            tree=tuple(provider.without(gone) for provider in self.tree),
            sharing=tuple(provider.without(gone) for provider in self.sharing),
            servers=tuple(s for s in self.servers if s.id not in gone),
        )

    def allocated(
        self, consumer: str, taken: Mapping[str, Mapping[str, int]]
    ) -> HostView:
        """Return the host with further allocations of a consumer.

        :param taken: {provider's UUID: {resource class: amount}}
        """

        def with_allocation(provider: Provider) -> Provider:
            more = taken.get(provider.uuid)
            if not more:
                return provider
            return replace(
                provider, allocations={**provider.allocations, consumer: more}
            )

        return replace(
            self,
            tree=tuple(with_allocation(provider) for provider in self.tree),
            sharing=tuple(with_allocation(provider) for provider in self.sharing),
        )


def view_of(snapshot: Snapshot, host: str) -> HostView:
    """Return one host of a cloud; the first node if the host has several.

    :param host: name of the compute service
    :raises IndexError: the snapshot has no such host
    """
    return views_of(snapshot, {host})[0]


def views_of(
    snapshot: Snapshot, hosts: Collection[str] | None = None
) -> tuple[HostView, ...]:
    """Return hosts of a cloud, in the snapshot's order.

    :param hosts: names of compute services; None for all hosts
    """
    sharing = [p for p in snapshot.providers if SHARING in p.traits]
    isolating = [a for a in snapshot.aggregates if a.required_traits]
    found = []
    for host in snapshot.hosts:
        if hosts is not None and host.host not in hosts:
            continue
        tree = snapshot.trees.get(host.provider, ())
        members = frozenset(a for provider in tree for a in provider.aggregates)
        top = tree[0].aggregates if tree else frozenset()
        found.append(
            HostView(
                compute=host,
                facts=host_facts(snapshot, host),
                tree=tree,
                sharing=tuple(
                    p for p in sharing if p not in tree and p.aggregates & members
                ),
                aggregates=snapshot.aggregates_by_host.get(host.host, ()),
                isolating=tuple(a for a in isolating if a.uuid in top),
                servers=snapshot.servers_by_host.get(host.host, ()),
                cloud=snapshot,
            )
        )
    return tuple(found)
