# SPDX-License-Identifier: Apache-2.0
"""NUMA nodes of hosts from Nova's database; runs on a controller.

``ComputeNode.numa_topology``, which no API shows, is what nova-scheduler reads, pins
and page pools included, and so are the vCPUs and instances that are counted beside
it.  The version of each nova-compute tells its release.  Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nova import config, context, objects
from nova.conf import CONF

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import PagePool
from nova_perfvm.facts.snapshot import NOVA_DATABASE, ComputeHost, HostCell, Snapshot
from nova_perfvm.printable import first_line


class NovaDBError(PerfVMError):
    """Nova's database cannot be read."""


def configure(path: str) -> None:
    """Read nova.conf, which says where the databases are.

    :raises NovaDBError: when it cannot be read
    """
    if not Path(path).is_file():
        raise NovaDBError(
            f"there is no {path}: run this on a controller, or name nova.conf "
            "(--from-nova-db FILE)"
        )
    try:
        # With RPC, as cell mappings are made of its options; nothing connects.
        config.parse_args(["nova-perfvm"], default_config_files=[path])
    except Exception as exc:
        raise NovaDBError(f"{path} cannot be used: {first_line(exc)}") from exc
    if not CONF.api_database.connection:
        raise NovaDBError(
            f"{path} has no [api_database]connection: it is not one of a controller"
        )


def compute_nodes(skipped: list[str]) -> list[objects.ComputeNode]:
    """Return the compute nodes of all of Nova's cells that are not disabled.

    :param skipped: is told of cells that cannot be read
    :raises NovaDBError: when the API's database cannot be read
    """

    def nodes(targeted: context.RequestContext) -> list[objects.ComputeNode]:
        return list(objects.ComputeNodeList.get_all(targeted))

    return _of_cells(nodes, skipped)


def service_versions(skipped: list[str]) -> dict[str, int]:
    """Return the version of each nova-compute, by host; see :func:`compute_nodes`."""

    def services(targeted: context.RequestContext) -> list[objects.Service]:
        return list(
            objects.ServiceList.get_by_binary(
                targeted, "nova-compute", include_disabled=True
            )
        )

    return {found.host: found.version for found in _of_cells(services, skipped)}


def _of_cells(
    read: Callable[[context.RequestContext], Iterable[Any]], skipped: list[str]
) -> list[Any]:
    """Return what is read of each of Nova's cells that is not disabled."""
    objects.register_all()
    admin = context.get_admin_context()
    found: list[Any] = []
    try:
        cells = list(objects.CellMappingList.get_by_disabled(admin, disabled=False))
    except Exception as exc:
        raise NovaDBError(
            f"Nova's database cannot be read: {first_line(exc)}: see "
            "[api_database]connection, and nova-manage cell_v2 list_cells"
        ) from exc
    for cell in cells:
        if cell.is_cell0():
            continue
        try:
            with context.target_cell(admin, cell) as targeted:
                found.extend(read(targeted))
        except Exception as exc:  # noqa: BLE001  others can be read
            skipped.append(f"cell {cell.identity}: {first_line(exc)}")
    return found


def with_cells(
    snapshot: Snapshot,
    nodes: Iterable[objects.ComputeNode],
    versions: Mapping[str, int] | None = None,
) -> Snapshot:
    """Return a snapshot whose hosts are as the scheduler sees them.

    A host of which the database knows nothing keeps what it had; one of which it has
    what cannot be read is marked.

    :param versions: of each nova-compute, by host; None where nobody looked
    """
    told = versions or {}
    hosts = [
        replace(host, service_version=told.get(host.host, host.service_version))
        for host in snapshot.hosts
    ]
    by_uuid = {node.uuid: node for node in nodes}
    return replace(
        snapshot,
        hosts=tuple(
            _with(host, by_uuid[host.provider]) if host.provider in by_uuid else host
            for host in hosts
        ),
    )


def _with(host: ComputeHost, node: objects.ComputeNode) -> ComputeHost:
    cells: tuple[HostCell, ...] = ()
    why = ""
    try:
        cells = tuple(cells_of(node.numa_topology))
    except Exception as exc:  # noqa: BLE001  a host's, and others can be read
        why = f"{type(exc).__name__}: {first_line(exc)}"
    return replace(
        host,
        cells=cells,
        unreadable=why,
        cells_source=NOVA_DATABASE,
        vcpus_used=node.vcpus_used,
        num_instances=int((node.stats or {}).get("num_instances", 0)),
        reported={**host.reported, **dict(_reported(node))} if host.reported else {},
    )


def _reported(node: objects.ComputeNode) -> Iterator[tuple[str, float]]:
    """Yield by what nova-scheduler weighs a host, and no API shows."""
    stats = node.stats or {}
    yield "cpu_allocation_ratio", node.cpu_allocation_ratio
    yield "io_workload", int(stats.get("io_workload", 0))
    yield "failed_builds", int(stats.get("failed_builds", 0))
    yield "free_pci", sum(pool.count for pool in node.pci_device_pools or ())
    for metric in objects.MonitorMetricList.from_json(node.metrics):
        yield f"metrics.{metric.name}", metric.value


def cells_of(text: str | None) -> Iterator[HostCell]:
    """Return the cells of a topology as the database holds it; none without one."""
    if not text:
        return
    topology = objects.NUMATopology.obj_from_db_obj(text)
    for cell in topology.cells:
        yield HostCell(
            id=cell.id,
            cpuset=frozenset(cell.cpuset),
            pcpuset=frozenset(cell.pcpuset),
            memory_mb=cell.memory,
            siblings=tuple(frozenset(group) for group in cell.siblings),
            pinned_cpus=frozenset(cell.pinned_cpus),
            memory_usage_mb=cell.memory_usage,
            mempages=tuple(_pages(pool) for pool in cell.mempages),
            physnets=_physnets(cell),
        )


def _physnets(cell: objects.NUMACell) -> frozenset[str]:
    # Computes from before Rocky report none.
    known = "network_metadata" in cell and "physnets" in cell.network_metadata
    return frozenset(cell.network_metadata.physnets if known else ())


def _pages(pool: objects.NUMAPagesTopology) -> PagePool:
    # Computes from before Pike report no reserved pages.
    reserved = pool.reserved if "reserved" in pool else 0
    return PagePool(pool.size_kb, pool.total - reserved, pool.used)
