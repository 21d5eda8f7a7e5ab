# SPDX-License-Identifier: Apache-2.0
"""NUMA nodes and servers from Nova's database; runs on a controller.

``ComputeNode.numa_topology``, which no API shows, is what nova-scheduler reads, pins
and page pools included, and so are the vCPUs and instances that are counted beside
it.  ``Instance.numa_topology`` the API shows to administrators.  Nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from nova import config, context, exception, objects
from nova.api.openstack import common
from nova.conf import CONF
from oslo_utils import uuidutils

from nova_perfvm.cloud import servers
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import (
    NOVA_DATABASE,
    ComputeHost,
    HostCell,
    HostPages,
    Server,
    ServerCell,
    Snapshot,
)
from nova_perfvm.printable import first_line

_Found = TypeVar("_Found")

_OF_SERVERS: Final = ["flavor", "numa_topology"]


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


def compute_nodes(skipped: list[str] | None = None) -> list[objects.ComputeNode]:
    """Return the compute nodes of all of Nova's cells that are not disabled.

    :param skipped: is told of cells that cannot be read; None: that is an error
    :raises NovaDBError: when a database cannot be read
    """
    return _of_cells(objects.ComputeNodeList.get_all, skipped)


def _of_cells(
    read: Callable[[Any], Iterable[_Found]],
    skipped: list[str] | None = None,
    *,
    unplaced: bool = False,
) -> list[_Found]:
    """Return what is read in all cells that are not disabled.

    :param read: called with a context of each cell
    :param unplaced: in cell0, too: the servers that came to no host
    """
    objects.register_all()
    admin = context.get_admin_context()
    found: list[_Found] = []
    try:
        cells = list(objects.CellMappingList.get_by_disabled(admin, disabled=False))
    except Exception as exc:
        raise _unreadable(exc) from exc
    for cell in cells:
        if cell.is_cell0() and not unplaced:
            continue
        try:
            with context.target_cell(admin, cell) as targeted:
                found.extend(read(targeted))
        except Exception as exc:
            if skipped is None:
                raise _unreadable(exc) from exc
            skipped.append(f"cell {cell.identity}: {first_line(exc)}")
    return found


def _unreadable(exc: Exception) -> NovaDBError:
    return NovaDBError(
        f"Nova's database cannot be read: {first_line(exc)}: see "
        "[api_database]connection, and nova-manage cell_v2 list_cells"
    )


def servers_named(names: Iterable[str], skipped: list[str]) -> tuple[Server, ...]:
    """Return servers by names or IDs, with their topologies.

    :param skipped: is told of cells that cannot be read
    :raises CloudError: when one is not there, or several have a name
    :raises NovaDBError: when the database cannot be read
    """

    def look(name: str) -> list[Server]:
        return _of_cells(lambda cell: _named(cell, name), skipped, unplaced=True)

    def unseen() -> str:
        return f"; not read: {'; '.join(sorted(set(skipped)))}" if skipped else ""

    return servers.select(names, look, unseen)


def servers_on(host: str, skipped: list[str]) -> tuple[str, tuple[Server, ...]]:
    """Return a host's name, and all servers on it, with their topologies.

    :param host: its service's name, or its hypervisor's
    :param skipped: is told of cells that cannot be read
    :raises NovaDBError: when there is no such host, or the database cannot be read
    """
    known = {
        node.host
        for node in compute_nodes(skipped)
        if host in {node.host, node.hypervisor_hostname}
    }
    if len(known) != 1:
        unread = f"; not read: {'; '.join(skipped)}" if skipped else ""
        raise NovaDBError(
            f"Nova's database has {len(known)} hosts {host}: see openstack compute "
            f"service list --service nova-compute{unread}"
        )
    (name,) = known

    def read(cell: Any) -> Iterator[Server]:
        found = objects.InstanceList.get_by_host(cell, name, _OF_SERVERS)
        return map(_server, found)

    return name, tuple(_of_cells(read, []))


def _named(cell: Any, name: str) -> Iterator[Server]:
    if uuidutils.is_uuid_like(name):
        try:
            yield _server(objects.Instance.get_by_uuid(cell, name, _OF_SERVERS))
        except exception.InstanceNotFound:
            pass
        else:
            return
    filters = {"deleted": False, "display_name": re.escape(name)}
    for found in objects.InstanceList.get_by_filters(
        cell, filters, expected_attrs=_OF_SERVERS
    ):
        if found.display_name == name:
            yield _server(found)


def _server(instance: objects.Instance) -> Server:
    topology = instance.numa_topology
    cells = tuple(map(_server_cell, topology.cells)) if topology else ()
    changed = instance.updated_at or instance.created_at
    return Server(
        id=instance.uuid,
        name=instance.display_name or "",
        host=instance.host,
        status=common.status_from_state(instance.vm_state, instance.task_state),
        vcpus=instance.flavor.vcpus,
        extra_specs=dict(instance.flavor.extra_specs or {}),
        pinned=any(cell.cpu_pinning for cell in cells),
        task=instance.task_state,
        project=instance.project_id or "",
        node=instance.node,
        flavor=instance.flavor.name,
        memory_mb=instance.flavor.memory_mb,
        updated=changed.isoformat() if changed else "",
        cells=cells,
    )


def _server_cell(cell: objects.InstanceNUMACell) -> ServerCell:
    return ServerCell(
        host_node=cell.id,
        vcpus=frozenset(cell.total_cpus),
        memory_mb=cell.memory,
        cpu_pinning=dict(cell.cpu_pinning or {}),
    )


def with_cells(snapshot: Snapshot, nodes: Iterable[objects.ComputeNode]) -> Snapshot:
    """Return a snapshot whose hosts are as the scheduler sees them.

    A host of which the database knows nothing keeps what it had; one of which it has
    what cannot be read is marked.
    """
    by_uuid = {node.uuid: node for node in nodes}
    return replace(
        snapshot,
        hosts=tuple(
            _with(host, by_uuid[host.provider]) if host.provider in by_uuid else host
            for host in snapshot.hosts
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
    )


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
        )


def _pages(pool: objects.NUMAPagesTopology) -> HostPages:
    # Computes from before Pike report no reserved pages.
    reserved = pool.reserved if "reserved" in pool else 0
    return HostPages(pool.size_kb, pool.total - reserved, pool.used)
