# SPDX-License-Identifier: Apache-2.0
"""NUMA nodes and PCI devices of hosts from Nova's database; runs on a controller.

``ComputeNode.numa_topology`` and its pools of PCI devices, which no API shows, are what
nova-scheduler reads, pins and page pools included, and so are the vCPUs and instances
that are counted beside them.  The version of each nova-compute tells its release.
Nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from nova_perfvm.facts.snapshot.pci import LEGACY, PCIPool, PCIRequest
from nova_perfvm.printable import first_line

# A server's ID, what it asked for of PCI devices, and (compute node, device) of those
# that it has.
ServerDevices = tuple[str, tuple[PCIRequest, ...], list[tuple[int, PCIPool]]]


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


def aliases() -> dict[str, PCIRequest]:
    """Return what [pci]alias of nova.conf names, as requests of one device each.

    :raises NovaDBError: when Nova would not take them
    """
    made = objects.InstancePCIRequest
    # Older releases begin the name with an underscore.
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
    # Where it was given devices once is of no interest.
    specs = [_texts(spec, without="rp_uuids") for spec in found.spec]
    counted = CONF.filter_scheduler.pci_in_placement and not port
    first = specs[0]
    ids = (first.get(key) for key in ("resource_class", "vendor_id", "product_id"))
    traits = translator.get_traits(first.get("traits", ""))
    return PCIRequest(
        name=found.alias_name or "of a port",
        count=found.count,
        specs=tuple(specs),
        policy=found.numa_policy or LEGACY,
        port=port,
        resource_class=translator.get_resource_class(*ids) if counted else "",
        traits=frozenset(traits if counted else ()),
    )


def _texts(tags: Mapping[str, Any], without: str = "") -> dict[str, str]:
    return {k: str(v) for k, v in tags.items() if v is not None and k != without}


def server_devices(skipped: list[str]) -> list[ServerDevices]:
    """Return the servers that asked for PCI devices; see :func:`compute_nodes`."""
    return _of_cells(_server_devices, skipped)


@main_db.pick_context_manager_reader  # type: ignore[untyped-decorator]
def _server_devices(targeted: context.RequestContext) -> list[ServerDevices]:
    """Read it in two requests: Nova has no list of all servers' devices."""
    extra, device = models.InstanceExtra, models.PciDevice
    query, has_server = targeted.session.query, device.instance_uuid.isnot(None)
    devices: dict[str, list[models.PciDevice]] = {}
    for row in query(device).filter(device.deleted == 0, has_server):
        devices.setdefault(row.instance_uuid, []).append(row)
    texts = query(extra.instance_uuid, extra.pci_requests).filter(
        extra.deleted == 0, extra.pci_requests.isnot(None), extra.pci_requests != "[]"
    )
    found = []
    for server, text in texts:
        asked = objects.InstancePCIRequests.obj_from_db(targeted, server, text).requests
        requests = [(one.request_id, _request(one)) for one in asked]
        held = [
            (row.compute_node_id, _held(row, dict(requests).get(row.request_id)))
            for row in devices.get(server, ())
        ]
        found.append((server, tuple(one for _, one in requests), held))
    return found


def _held(row: models.PciDevice, asked: PCIRequest | None) -> PCIPool:
    """Return a device with the tags that it is known to have.

    Those of [pci]device_spec no database has: it has those that were asked for.
    """
    info = jsonutils.loads(row.extra_info) if row.extra_info else {}
    tags = dict(asked.specs[0]) if asked and len(asked.specs) == 1 else {}
    for key in ("resource_class", "traits"):
        tags.pop(key, None)
    tags |= {k: info[k] for k in ("rp_uuid", "parent_ifname") if k in info}
    tags |= {k: getattr(row, k) for k in ("vendor_id", "product_id", "dev_type")}
    tags["address"] = row.parent_addr or row.address
    return PCIPool(1, row.numa_node, tags)


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
    devices: Iterable[ServerDevices] | None = None,
) -> Snapshot:
    """Return a snapshot whose hosts are as the scheduler sees them.

    A host of which the database knows nothing keeps what it had; one of which it has
    what cannot be read is marked.

    :param versions: of each nova-compute, by host; None where nobody looked
    :param devices: PCI devices of servers; None where nobody looked
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
    """Return a snapshot whose servers have PCI devices.

    Of what is on hosts of which the database tells nothing, nothing is known.
    """
    by_server = {server: (asked, held) for server, asked, held in devices}
    ids = {(node.host, node.hypervisor_hostname): node.id for node in nodes}

    def complete(server: Server) -> Server:
        node = ids.get((server.host, server.node))
        if server.id not in by_server:
            return server if node is None else replace(server, pci_requests=())
        asked, held = by_server[server.id]
        here = tuple(device for at, device in held if at == node)
        return replace(server, pci_requests=asked, pci_devices=here)

    servers = tuple(map(complete, snapshot.servers))
    return replace(snapshot, servers=servers, pci_aliases=aliases())


def _pools(node: objects.ComputeNode) -> tuple[PCIPool, ...]:
    """Return the free PCI devices of a compute node; none where it reports none."""
    return tuple(
        PCIPool(
            pool.count,
            pool.numa_node,
            {"vendor_id": pool.vendor_id, "product_id": pool.product_id}
            | _texts(pool.tags),
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


def _capabilities(node: objects.ComputeNode) -> Iterator[tuple[str, str]]:
    """Yield what filters look at, by the names of nova.scheduler.host_manager."""
    told = {name: getattr(node, name) for name in node.fields if name in node}
    found = [spec.to_list() for spec in told.get("supported_hv_specs") or ()]
    yield "supported_instances", jsonutils.dumps(found)
    yield "stats", jsonutils.dumps(told.get("stats") or {})
    for name in ("free_ram_mb", "hypervisor_type", "hypervisor_version"):
        if told.get(name) is not None:
            yield name, str(told[name])
    yield "cpu_info", told.get("cpu_info") or "{}"


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
            cpu_usage=cell.cpu_usage,
            mempages=tuple(_pages(pool) for pool in cell.mempages),
            physnets=_physnets(cell),
            socket=cell.socket if "socket" in cell else None,
        )


def _physnets(cell: objects.NUMACell) -> frozenset[str]:
    # Computes from before Rocky report none.
    known = "network_metadata" in cell and "physnets" in cell.network_metadata
    return frozenset(cell.network_metadata.physnets if known else ())


def _pages(pool: objects.NUMAPagesTopology) -> PagePool:
    # Computes from before Pike report no reserved pages.
    reserved = pool.reserved if "reserved" in pool else 0
    return PagePool(pool.size_kb, pool.total - reserved, pool.used)
