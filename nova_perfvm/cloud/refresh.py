# SPDX-License-Identifier: Apache-2.0
"""Read a few hosts of a snapshot again while a plan changes them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import NotThereError, openstack_errors
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.facts.snapshot import ComputeHost, Server, Snapshot
from nova_perfvm.facts.snapshot.pci import returned
from nova_perfvm.generate.inventory import with_inventory

# Capabilities in Nova's database that change with the servers of a host.
_MOMENTARY: Final = frozenset({"free_disk_mb", "free_ram_mb", "stats"})


def refresh(api: API, snapshot: Snapshot, hosts: Iterable[str]) -> Snapshot:
    """Return a snapshot in which some hosts, with their servers, are read again.

    Aggregates, services and migrations are read again, too.  Flavors and images are
    not, as servers keep the flavor and image that they were made with; nor are sharing
    providers.

    :param hosts: names of compute services; hosts that no longer exist are left out
    :raises CloudError: when a request fails
    """
    names = frozenset(hosts)
    before = [host for host in snapshot.hosts if host.host in names]
    others = [host for host in snapshot.hosts if host.host not in names]
    with openstack_errors():
        found = list(_hypervisors(api, before))
    fresh = read_snapshot(api, hosts=found, before=snapshot)
    fresh = _with_cells(fresh, before)
    fresh = _with_devices(fresh, snapshot)
    roots = {host.provider for host in before}
    roots |= {provider.uuid for provider in fresh.providers}
    seen = {server.id for server in fresh.servers}
    return replace(
        fresh,
        hosts=tuple(sorted((*others, *fresh.hosts), key=lambda h: (h.host, h.node))),
        providers=(
            *(
                p
                for p in snapshot.providers
                if p.uuid not in roots and p.root not in roots
            ),
            *fresh.providers,
        ),
        servers=(
            *(
                server
                for server in snapshot.servers
                if server.host not in names and server.id not in seen
            ),
            *fresh.servers,
        ),
        gaps=snapshot.gaps,
        unseen_hosts=tuple(
            sorted({*snapshot.unseen_hosts} - names | {*fresh.unseen_hosts})
        ),
        policy_digest=snapshot.policy_digest,
    )


def _with_cells(fresh: Snapshot, before: Iterable[ComputeHost]) -> Snapshot:
    """Keep the hosts' facts that Nova's database or an inventory file has told.

    The CPUs and memory that servers use of these cells are computed again.
    """
    known = {host.provider: host for host in before}
    told = {host.host: host for host in before if host.cells_told}
    cells = {
        name: tuple(
            replace(cell, pinned_cpus=None, memory_usage_mb=None, cpu_usage=None)
            for cell in host.cells
        )
        for name, host in told.items()
    }
    found, _ = with_inventory(fresh, cells)
    hosts = tuple(
        replace(
            host,
            cells_source=told.get(host.host, host).cells_source,
            service_version=was.service_version,
            unreadable=was.unreadable,
            capabilities={
                **{k: v for k, v in was.capabilities.items() if k not in _MOMENTARY},
                **host.capabilities,
            },
        )
        for host in found.hosts
        if (was := known[host.provider])
    )
    return replace(found, hosts=hosts)


def _with_devices(fresh: Snapshot, snapshot: Snapshot) -> Snapshot:
    """Keep the PCI devices that Nova's database has told.

    When a server has left a host, its devices are free again.  Which devices a newly
    arrived server got is unknown here; nova-scheduler counts them.
    """
    known, now = snapshot.server_by_id, {s.id: s.host for s in fresh.servers}
    free = {host.host: host.pci_pools for host in snapshot.hosts}
    for server in snapshot.servers:
        if server.pci_devices and now.get(server.id) != server.host:
            host = server.host or ""
            free[host] = returned(free.get(host) or (), server.pci_devices)

    def complete(server: Server) -> Server:
        was = known.get(server.id)
        if was is None:
            return server
        held = was.pci_devices if was.host == server.host else ()
        return replace(server, pci_requests=was.pci_requests, pci_devices=held)

    return replace(
        fresh,
        hosts=tuple(replace(h, pci_pools=free.get(h.host)) for h in fresh.hosts),
        servers=tuple(map(complete, fresh.servers)),
        pci_aliases=snapshot.pci_aliases,
    )


def _hypervisors(api: API, hosts: Iterable[ComputeHost]) -> Iterator[dict[str, Any]]:
    """Yield the hypervisors of the hosts that still exist."""
    for host in hosts:
        with contextlib.suppress(NotThereError):
            path = f"/os-hypervisors/{host.provider}"
            yield api.nova("GET", path, key="hypervisor")
