# SPDX-License-Identifier: Apache-2.0
"""One host with all that is known about it, also as it would be afterwards."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from nova_perfvm.facts import HostFacts
from nova_perfvm.facts.snapshot import (
    Aggregate,
    ComputeHost,
    Provider,
    Server,
    Snapshot,
    host_facts,
)

SHARING = "MISC_SHARES_VIA_AGGREGATE"


@dataclass(frozen=True)
class HostView:
    """One compute host.

    :ivar facts: what the rules judge
    :ivar tree: its resource providers, the top one first; empty if it has none
    :ivar sharing: providers that share their resources with it
    :ivar aggregates: Nova's that it is in
    :ivar isolating: aggregates that Placement keeps those without a trait off,
        as far as they hold the host's top provider
    """

    host: ComputeHost
    facts: HostFacts
    tree: tuple[Provider, ...] = ()
    sharing: tuple[Provider, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    isolating: tuple[Aggregate, ...] = ()
    servers: tuple[Server, ...] = ()

    @property
    def name(self) -> str:
        """The host, with its node where that is called otherwise."""
        host, node = self.host.host, self.host.node
        return host if host == node else f"{host} ({node})"

    @property
    def providers(self) -> tuple[Provider, ...]:
        """All that resources may come of."""
        return self.tree + self.sharing

    def without(self, servers: Collection[Server]) -> HostView:
        """Return the host as it is when these servers have left."""
        gone = {server.id for server in servers}
        pins = {cpu for server in servers for cpu in server.pinned_cpus}
        memory_mb: dict[int | None, int] = {}
        pages: dict[tuple[int | None, int], int] = {}
        for server in servers:
            for found in server.cells or ():
                node, size_kb = found.host_node, server.page_size_kb
                memory_mb[node] = memory_mb.get(node, 0) + found.memory_mb
                if size_kb:
                    number = found.memory_mb * 1024 // size_kb
                    pages[node, size_kb] = pages.get((node, size_kb), 0) + number
        cells = [
            cell._replace(
                pinned_cpus=cell.pinned_cpus - pins,
                memory_usage_mb=cell.memory_usage_mb - memory_mb.get(cell.id, 0),
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
        return replace(
            self,
            facts=facts,
            tree=tuple(provider.without(gone) for provider in self.tree),
            sharing=tuple(provider.without(gone) for provider in self.sharing),
            servers=tuple(s for s in self.servers if s.id not in gone),
        )

    def allocated(
        self, consumer: str, taken: Mapping[str, Mapping[str, int]]
    ) -> HostView:
        """Return the host when a consumer has taken more, by provider's UUID."""

        def add(provider: Provider) -> Provider:
            more = taken.get(provider.uuid)
            if not more:
                return provider
            return replace(
                provider, allocations={**provider.allocations, consumer: more}
            )

        return replace(
            self,
            tree=tuple(add(provider) for provider in self.tree),
            sharing=tuple(add(provider) for provider in self.sharing),
        )


def views_of(
    snapshot: Snapshot, hosts: Collection[str] | None = None
) -> tuple[HostView, ...]:
    """Return hosts of a cloud, in the snapshot's order.

    :param hosts: names of the services of those wanted; None for all
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
                host=host,
                facts=host_facts(snapshot, host),
                tree=tree,
                sharing=tuple(
                    p for p in sharing if p not in tree and p.aggregates & members
                ),
                aggregates=tuple(
                    a for a in snapshot.aggregates if host.host in a.hosts
                ),
                isolating=tuple(a for a in isolating if a.uuid in top),
                servers=snapshot.servers_by_host.get(host.host, ()),
            )
        )
    return tuple(found)
