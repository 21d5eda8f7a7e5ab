# SPDX-License-Identifier: Apache-2.0
"""Put the cells of an inventory into a snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from nova_perfvm import cpuset
from nova_perfvm.facts.snapshot import INVENTORY_FILE, NOVA_DATABASE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from nova_perfvm.facts.snapshot import ComputeHost, HostCell, Server, Snapshot


# The kernel reserves some memory, depending on its settings, so totals differ.
_ROUGHLY: Final = 0.02


def with_inventory(
    snapshot: Snapshot,
    inventory: Mapping[str, tuple[HostCell, ...]],
    source: str = INVENTORY_FILE,
) -> tuple[Snapshot, tuple[str, ...]]:
    """Return a snapshot with the inventory's cells, and remarks on contradictions.

    Hosts outside the inventory keep their cells; cells from Nova's database win over
    the inventory's.

    :param inventory: cells by the host's name
    :param source: name of the inventory's source, for the snapshot and the remarks
    """
    hosts = []
    remarks: list[str] = []
    for host in snapshot.hosts:
        cells = inventory.get(host.host)
        if cells is None or host.cells_source == NOVA_DATABASE:
            hosts.append(host)
            continue
        servers = snapshot.servers_by_host.get(host.host, ())
        remarks += _doubts(snapshot, host, cells, servers, source)
        made = tuple(_filled(host, cell, len(cells), servers) for cell in cells)
        hosts.append(replace(host, cells=made, cells_source=source))
    unknown = sorted(inventory.keys() - {host.host for host in snapshot.hosts})
    if unknown:
        remarks.append(
            f"{source}: no compute host is called {', '.join(unknown)}: see "
            "openstack compute service list"
        )
    return replace(snapshot, hosts=tuple(hosts)), tuple(remarks)


def _filled(
    host: ComputeHost, cell: HostCell, cells: int, servers: tuple[Server, ...]
) -> HostCell:
    """Return a cell with the huge pages that servers use, and with missing memory.

    Missing memory (0) becomes an equal share of the host's memory.

    :param cells: number of the host's cells
    """
    return replace(
        cell,
        memory_mb=cell.memory_mb or host.memory_mb // cells,
        mempages=tuple(
            pool._replace(used=_used(cell.id, pool.size_kb, servers))
            for pool in cell.mempages
        ),
    )


def _used(node: int, size_kb: int, servers: tuple[Server, ...]) -> int:
    return sum(
        cell.memory_mb * 1024 // size_kb
        for server in servers
        if server.page_size_kb == size_kb
        for cell in server.cells or ()
        if cell.host_node == node
    )


def _doubts(
    snapshot: Snapshot,
    host: ComputeHost,
    cells: tuple[HostCell, ...],
    servers: tuple[Server, ...],
    source: str,
) -> Iterator[str]:
    """Yield contradictions of the inventory with Placement or with servers' pins."""
    where = f"{source}: host {host.host}"
    provider = snapshot.provider_by_uuid.get(host.provider)
    counted = provider.total("PCPU") if provider else 0
    own = sum(len(cell.pcpuset) for cell in cells)
    if counted and counted != own:
        yield f"{where}: {own} dedicated CPUs, and Placement counts {counted} PCPU"
    memory_mb = sum(cell.memory_mb for cell in cells)
    has_mb = provider.total("MEMORY_MB") if provider else 0
    told = all(cell.memory_mb for cell in cells)
    if has_mb and told and abs(memory_mb - has_mb) > _ROUGHLY * has_mb:
        yield f"{where}: {memory_mb} MiB of memory, and Placement counts {has_mb}"
    for cell in cells:
        parts = [
            part
            for server in servers
            for part in server.cells or ()
            if part.host_node == cell.id
        ]
        pins = {cpu for part in parts for cpu in part.cpu_pinning.values()}
        for what, needs_mb in (
            ("servers have", sum(part.memory_mb for part in parts)),
            ("huge pages are", sum(p.size_kb * p.total // 1024 for p in cell.mempages)),
        ):
            if 0 < cell.memory_mb < needs_mb:
                yield (
                    f"{where}: {what} {needs_mb} MiB of NUMA node {cell.id}, which has "
                    f"{cell.memory_mb}"
                )
        if pins - cell.pcpuset:
            yield (
                f"{where}: servers own CPUs {cpuset.format_cpus(pins - cell.pcpuset)} "
                f"of NUMA node {cell.id}, which has {cpuset.format_cpus(cell.pcpuset)}"
            )
