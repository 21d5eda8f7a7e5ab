# SPDX-License-Identifier: Apache-2.0
"""Read NUMA nodes and PCI devices of hosts from Nova's database, on a controller.

nova-scheduler reads ``ComputeNode.numa_topology`` with its pinned CPUs and page pools,
the pools of PCI devices, and the counts of vCPUs and instances; no API shows them.  The
version of each nova-compute service tells its release.  Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from nova import config, context, exception, objects
from nova.compute import pci_placement_translator as translator
from nova.conf import CONF
from nova.db.main import api as main_db
from nova.db.main import models
from nova.pci import request as pci_request
from oslo_serialization import jsonutils

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import PagePool
from nova_perfvm.facts.snapshot import (
    NOVA_DATABASE,
    ComputeHost,
    HostCell,
    Server,
    Snapshot,
)
from nova_perfvm.facts.snapshot.pci import LEGACY, PCIPool, PCIRequest, Tags
from nova_perfvm.printable import first_line

# (ID of a server, its PCI requests, (ID of the compute node, device) of each PCI device
# that the server has).
ServerDevices = tuple[str, tuple[PCIRequest, ...], list[tuple[int, PCIPool]]]


class NovaDBError(PerfVMError):
    """Nova's database cannot be read."""


def configure(path: str) -> None:
    """Read nova.conf, which names the databases.

    :raises NovaDBError: when the file cannot be read, or names no API database
    """
    if not Path(path).is_file():
        raise NovaDBError(
            f"there is no {path}: run this on a controller, or name nova.conf "
            "(--from-nova-db FILE)"
        )
    try:
        # The RPC options are read too, as cell mappings are made from them; nothing
        # connects.
        config.parse_args(["nova-perfvm"], default_config_files=[path])
    except Exception as exc:
        raise NovaDBError(f"{path} cannot be used: {first_line(exc)}") from exc
    if not CONF.api_database.connection:
        raise NovaDBError(
            f"{path} has no [api_database]connection: name a controller's nova.conf"
        )


def compute_nodes(skipped: list[str]) -> list[objects.ComputeNode]:
    """Return the compute nodes of all enabled cells.

    :param skipped: receives a message for each cell that cannot be read
    :raises NovaDBError: when the API database cannot be read
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


def aliases() -> dict[str, PCIRequest]:
    """Return the aliases of [pci]alias in nova.conf, each as a request for one device.

    :raises NovaDBError: when Nova would refuse the option
    """
    made = objects.InstancePCIRequest
    # Older Nova releases call the function with a leading underscore.
    names = ("get_alias_from_config", "_get_alias_from_config")
    read = next(filter(None, (getattr(pci_request, name, None) for name in names)))
    try:
        found = read().items()
    except exception.PciInvalidAlias as exc:
        raise NovaDBError(f"[pci]alias of nova.conf: {first_line(exc)}") from exc
    return {
        name: _request(made(count=1, spec=spec, numa_policy=policy, alias_name=name))
        for name, (policy, spec) in found
    }


def _request(found: objects.InstancePCIRequest) -> PCIRequest:
    port = found.source == found.NEUTRON_PORT
    # rp_uuids names the providers of devices that the request was once given:
    # irrelevant now.
    specs = [_texts(spec, without="rp_uuids") for spec in found.spec]
    counted = CONF.filter_scheduler.pci_in_placement and not port
    first = specs[0]
    ids = (first.get(key) for key in ("resource_class", "vendor_id", "product_id"))
    traits = translator.get_traits(first.get("traits") or "")
    return PCIRequest(
        name=found.alias_name or "of a port",
        count=found.count,
        specs=tuple(specs),
        policy=found.numa_policy or LEGACY,
        port=port,
        resource_class=translator.get_resource_class(*ids) if counted else "",
        traits=frozenset(traits if counted else ()),
    )


def _texts(tags: Mapping[str, Any], without: str = "") -> Tags:
    texts = {k: None if v is None else str(v) for k, v in tags.items()}
    return {key: text for key, text in texts.items() if key != without}


def server_devices(skipped: list[str]) -> list[ServerDevices]:
    """Return the PCI requests and devices of servers; see :func:`compute_nodes`."""
    return _of_cells(_server_devices, skipped)


@main_db.pick_context_manager_reader  # type: ignore[untyped-decorator]
def _server_devices(targeted: context.RequestContext) -> list[ServerDevices]:
    """Read a cell's PCI requests and devices in two queries; Nova has no such list.

    Servers without PCI requests are listed, too: they are known to have none.
    """
    extra, device = models.InstanceExtra, models.PciDevice
    query, has_server = targeted.session.query, device.instance_uuid.isnot(None)
    devices: dict[str, list[models.PciDevice]] = {}
    for row in query(device).filter(device.deleted == 0, has_server):
        devices.setdefault(row.instance_uuid, []).append(row)
    texts = query(extra.instance_uuid, extra.pci_requests).filter(extra.deleted == 0)
    found: list[ServerDevices] = []
    for server, text in texts:
        if text in {None, "", "[]"}:
            found.append((server, (), []))
            continue
        asked = objects.InstancePCIRequests.obj_from_db(targeted, server, text).requests
        requests = [(one.request_id, _request(one)) for one in asked]
        held = [
            (row.compute_node_id, _held(row, dict(requests).get(row.request_id)))
            for row in devices.get(server, ())
        ]
        found.append((server, tuple(one for _, one in requests), held))
    return found


def _held(row: models.PciDevice, asked: PCIRequest | None) -> PCIPool:
    """Return a server's device with its known tags.

    The database does not store the tags of [pci]device_spec: the device is assumed to
    have those that the server asked for.
    """
    info = jsonutils.loads(row.extra_info) if row.extra_info else {}
    wanted = asked.specs[0] if asked and len(asked.specs) == 1 else {}
    others = {"resource_class", "traits"}
    tags = {k: v for k, v in wanted.items() if v is not None and k not in others}
    tags |= {k: info[k] for k in ("rp_uuid", "parent_ifname") if k in info}
    tags |= {k: getattr(row, k) for k in ("vendor_id", "product_id", "dev_type")}
    tags["address"] = row.parent_addr or row.address
    return PCIPool(1, row.numa_node, tags)


def _of_cells(
    read: Callable[[context.RequestContext], Iterable[Any]], skipped: list[str]
) -> list[Any]:
    """Return the results of `read` from all enabled cells but cell0.

    :param skipped: gets why a cell could not be read
    :raises NovaDBError: when the list of cells cannot be read
    """
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
    devices: Iterable[ServerDevices] | None = None,
) -> Snapshot:
    """Return a snapshot with the hosts' cells as nova-scheduler sees them.

    A host that the database does not know keeps its cells; a host whose topology cannot
    be read is marked ``unreadable``.

    :param versions: {host: version of nova-compute}; None if unread
    :param devices: PCI devices of servers; None if unread
    """
    nodes = list(nodes)
    if devices is not None:
        snapshot = _with_devices(snapshot, nodes, devices)
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


def _with_devices(
    snapshot: Snapshot,
    nodes: Iterable[objects.ComputeNode],
    devices: Iterable[ServerDevices],
) -> Snapshot:
    """Return a snapshot with the PCI devices of its servers.

    The devices of servers that `devices` does not list remain unknown.
    """
    by_server = {server: (asked, held) for server, asked, held in devices}
    ids = {(node.host, node.hypervisor_hostname): node.id for node in nodes}

    def complete(server: Server) -> Server:
        if server.id not in by_server:
            return server
        node = ids.get((server.host, server.node))
        asked, held = by_server[server.id]
        here = tuple(device for at, device in held if at == node)
        return replace(server, pci_requests=asked, pci_devices=here)

    servers = tuple(map(complete, snapshot.servers))
    return replace(snapshot, servers=servers, pci_aliases=aliases())


def _pools(node: objects.ComputeNode) -> tuple[PCIPool, ...]:
    """Return the free PCI devices of a compute node; empty if the node reports none."""
    return tuple(
        PCIPool(
            pool.count,
            pool.numa_node,
            {
                "vendor_id": pool.vendor_id,
                "product_id": pool.product_id,
                **_texts(pool.tags),
            },
        )
        for pool in node.pci_device_pools or ()
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
        pci_pools=_pools(node),
        capabilities={**host.capabilities, **dict(_capabilities(node))},
    )


# {attribute of nova.scheduler.host_manager.HostState: column of the compute node}
_COLUMNS: Final = {
    "free_ram_mb": "free_ram_mb",
    "hypervisor_type": "hypervisor_type",
    "hypervisor_version": "hypervisor_version",
    "total_usable_disk_gb": "local_gb",
    "total_usable_ram_mb": "memory_mb",
}


def _capabilities(node: objects.ComputeNode) -> Iterator[tuple[str, str]]:
    """Yield values that filters read, by their names in nova.scheduler.host_manager."""
    told = {name: getattr(node, name) for name in node.fields if name in node}
    found = [spec.to_list() for spec in told.get("supported_hv_specs") or ()]
    yield "supported_instances", jsonutils.dumps(found)
    yield "stats", jsonutils.dumps(told.get("stats") or {})
    for name, column in _COLUMNS.items():
        if told.get(column) is not None:
            yield name, str(told[column])
    if told.get("free_disk_gb") is not None:
        # As HostState._update_from_compute_node of nova.scheduler.host_manager
        sizes_gb = told["free_disk_gb"], told.get("disk_available_least")
        yield "free_disk_mb", str(1024 * min(gb for gb in sizes_gb if gb is not None))
    yield "cpu_info", told.get("cpu_info") or "{}"


def cells_of(text: str | None) -> Iterator[HostCell]:
    """Yield the cells of a stored NUMA topology; nothing without a topology."""
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
            cpu_usage=cell.cpu_usage,
            mempages=tuple(_pages(pool) for pool in cell.mempages),
            physnets=_physnets(cell),
            socket=cell.socket if "socket" in cell else None,
        )


def _physnets(cell: objects.NUMACell) -> frozenset[str]:
    # nova-compute reports physical networks since Rocky.
    known = "network_metadata" in cell and "physnets" in cell.network_metadata
    return frozenset(cell.network_metadata.physnets if known else ())


def _pages(pool: objects.NUMAPagesTopology) -> PagePool:
    # nova-compute reports reserved pages since Pike.
    reserved = pool.reserved if "reserved" in pool else 0
    return PagePool(pool.size_kb, pool.total - reserved, pool.used)
