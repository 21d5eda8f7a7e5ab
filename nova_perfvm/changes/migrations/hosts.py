# SPDX-License-Identifier: Apache-2.0
"""Hosts, and the whole cloud, after a server has moved between two hosts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from nova_perfvm.changes.migrations.planning import Planning, ServerKind
from nova_perfvm.diagnose.arrivals import Share, arrived
from nova_perfvm.facts import RequestCell
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import ComputeHost, Server, ServerCell, Snapshot


def server_added(
    planning: Planning, kind: ServerKind, server: Server, view: HostView
) -> HostView | None:
    """Return a host after a server has come; None if the host refuses the server.

    :param view: the host before, while the server still holds its former resources
    """
    request = kind.request
    policy, settings = planning.policy, planning.settings
    lost = planning.loses_limits(server)
    after = arrived(policy, request, view, settings, server.id, loses_limits=lost)
    if after is None:
        return None
    view = after.view
    there = replace(
        server,
        host=view.host,
        node=view.compute.node,
        availability_zone=view.compute.availability_zone or server.availability_zone,
        cells=_cells(server, request.facts.cells, after.shares),
        pci_devices=after.devices,
    )
    return replace(view, servers=(*view.servers, there))


def recorded(snapshot: Snapshot, views: Iterable[HostView]) -> Snapshot:
    """Return the snapshot with some of its hosts replaced."""
    by_host = {view.host: view for view in views}
    providers = {p.uuid: p for v in by_host.values() for p in v.providers}
    servers = {s.id: s for s in snapshot.servers}
    servers |= {s.id: s for v in by_host.values() for s in v.servers}
    return replace(
        snapshot,
        hosts=tuple(
            _without_reported_usage(host, by_host[host.host])
            if host.host in by_host
            else host
            for host in snapshot.hosts
        ),
        providers=tuple(providers.get(p.uuid, p) for p in snapshot.providers),
        servers=tuple(servers.values()),
    )


def _cells(
    server: Server, wanted: Sequence[RequestCell], found: Sequence[Share]
) -> tuple[ServerCell, ...] | None:
    """Return the server's cells on new NUMA nodes and CPUs; unchanged without NUMA."""
    if not wanted:
        return server.cells
    own = server.cells or ()
    if len(own) != len(wanted):
        own = tuple(_guest_cells(wanted))
    return tuple(
        replace(
            cell,
            host_node=share.cell,
            # A surplus CPU is that of isolated emulator threads, which no API shows.
            cpu_pinning=dict(zip(_pinned_vcpus(cell, asked), share.cpus, strict=False)),
        )
        for cell, asked, share in zip(own, wanted, found, strict=True)
    )


def _guest_cells(wanted: Sequence[RequestCell]) -> Iterable[ServerCell]:
    first = 0
    for cell in wanted:
        count = cell.vcpus + cell.pcpus
        vcpus = frozenset(range(first, first + count))
        yield ServerCell(None, vcpus, cell.memory_mb)
        first += count


def _pinned_vcpus(cell: ServerCell, asked: RequestCell) -> list[int]:
    return sorted(cell.cpu_pinning or cell.vcpus)[: asked.pcpus]


def _without_reported_usage(host: ComputeHost, view: HostView) -> ComputeHost:
    """Return a host without reported usage, which is then counted by its servers.

    Memory pages and PCI pools have the view's usage.
    """
    cells = tuple(
        replace(
            cell,
            pinned_cpus=None,
            memory_usage_mb=None,
            cpu_usage=None,
            mempages=tuple(found.mempages),
        )
        for cell, found in zip(host.cells, view.facts.cells, strict=True)
    )
    return replace(
        host,
        cells=cells,
        vcpus_used=None,
        num_instances=None,
        pci_pools=view.compute.pci_pools,
    )
