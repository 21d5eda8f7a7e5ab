# SPDX-License-Identifier: Apache-2.0
"""Turn answers of Nova, Placement and Glance into values of a snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from nova_perfvm import constants as const
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError, NotThereError, openstack_errors
from nova_perfvm.facts.snapshot import ASSUMED, ComputeHost, ServerGroup, assume_cells
from nova_perfvm.facts.snapshot.resources import (
    IMAGE_MEMBERS,
    Aggregate,
    Flavor,
    Image,
    Inventory,
    Migration,
    Provider,
    Server,
    ServerCell,
)
from nova_perfvm.policy import HostShape

_VOLUMES: Final = "os-extended-volumes:volumes_attached"
_HOST: Final = "OS-EXT-SRV-ATTR:host"
# The availability zone that a server keeps to when it moves (2.96).
BOUND_ZONE: Final = "pinned_availability_zone"
# Extra specs, or images' properties, that give a server a NUMA topology.
_TOPOLOGY_KEYS: Final = (
    const.CPU_POLICY,
    const.MEM_PAGE_SIZE,
    "hw:cpu_realtime",
    "hw:pmem",
    "hw:mem_encryption",
)
# The CPU policy of a flavor with which Nova refuses images that ask for pinned CPUs.
SHARED: Final = "shared"
# Members of Nova's answer to GET /os-hypervisors/detail.
Hypervisors = Sequence[Mapping[str, Any]]

# Fields that Nova's filters read.  Nova releases whose API does not show a host's shape
# do not show cpu_info either.
_CAPABILITIES: Final = ("cpu_info", "hypervisor_type", "hypervisor_version")

# The status that Nova (2.69) gives services and servers in a cell that is down.
_CELL_IS_DOWN: Final = "UNKNOWN"


@openstack_errors()
def aggregates(api: API) -> tuple[Aggregate, ...]:
    return tuple(
        Aggregate(
            id=found["id"],
            uuid=found["uuid"],
            name=found["name"],
            metadata=dict(found["metadata"]),
            hosts=frozenset(found["hosts"]),
        )
        for found in api.nova("GET", "/os-aggregates", key="aggregates")
    )


@openstack_errors()
def compute_services(api: API, host: str = "") -> dict[str, dict[str, Any]]:
    """Return the nova-compute services by host: all services, or the one of `host`.

    Only this list names services in cells that are down; paged lists, such as that of
    servers, omit them silently.
    """
    query = urlencode({"binary": "nova-compute"} | ({"host": host} if host else {}))
    found = api.nova("GET", f"/os-services?{query}", key="services")
    return {service["host"]: service for service in found}


def microversion(api: API) -> str:
    """Return Nova's newest microversion; empty if Nova does not answer."""
    try:
        return str(api.nova("GET", "/", key="version")["version"])
    except CloudError:
        return ""


@openstack_errors()
def in_lost_cells(services: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Return the hosts in cells that are down."""
    return frozenset(
        host for host, found in services.items() if found["status"] == _CELL_IS_DOWN
    )


@openstack_errors()
def known_names(api: API) -> tuple[frozenset[str], frozenset[str]]:
    """Return the custom traits and the resource classes that Placement knows."""
    traits = api.placement("GET", "/traits?name=startswith:CUSTOM_", key="traits")
    classes = api.placement("GET", "/resource_classes", key="resource_classes")
    return frozenset(traits), frozenset(found["name"] for found in classes)


def names(api: API) -> frozenset[str]:
    """Return this package's traits and resource classes that Placement knows."""
    traits, classes = known_names(api)
    own = {trait for trait in traits if trait.startswith(const.CUSTOM_PREFIX)}
    return classes & const.CHILD_CLASSES | own


def providers(api: API, **query: str) -> list[dict[str, Any]]:
    """Return Placement's list of the resource providers that match a query.

    Each entry has the provider's name, UUID, root and parent.
    """
    found: list[dict[str, Any]] = api.placement(
        "GET", f"/resource_providers?{urlencode(query)}", key="resource_providers"
    )
    return found


def provider(api: API, entry: Mapping[str, Any]) -> Provider:
    """Read a resource provider: inventories, traits, aggregates and allocations.

    If the provider changes while it is read, a later change with the returned
    generation is refused.
    """
    path = f"/resource_providers/{entry['uuid']}"
    inventories = api.placement("GET", f"{path}/inventories")
    traits = api.placement("GET", f"{path}/traits")
    members = api.placement("GET", f"{path}/aggregates")
    allocations = api.placement("GET", f"{path}/allocations")
    answers = (inventories, traits, members, allocations)
    return Provider(
        uuid=entry["uuid"],
        name=entry["name"],
        # If the generations differ, the oldest one makes Placement refuse the next
        # change, and the provider is read again.
        generation=min(answer["resource_provider_generation"] for answer in answers),
        inventories={
            name: Inventory(**{f.name: found[f.name] for f in fields(Inventory)})
            for name, found in inventories["inventories"].items()
        },
        traits=frozenset(traits["traits"]),
        allocations={
            consumer: dict(found["resources"])
            for consumer, found in allocations["allocations"].items()
        },
        aggregates=frozenset(members["aggregates"]),
        parent=entry.get("parent_provider_uuid"),
        root=entry.get("root_provider_uuid") or entry["uuid"],
    )


def allocation(api: API, consumer: str) -> dict[str, Any]:
    """Return a consumer's allocation, in the form that Placement accepts back."""
    answer: dict[str, Any] = api.placement("GET", f"/allocations/{consumer}")
    return answer


def server_list(api: API, host: str | None = None) -> Iterator[dict[str, Any]]:
    """Return Nova's entries of the servers of all projects, or of those on one host."""
    query = urlencode({"all_tenants": "1"} | ({"host": host} if host else {}))
    return api.nova_list(f"/servers/detail?{query}", "servers")


def server(found: Mapping[str, Any], *, volume_root: bool = False) -> Server:
    """Turn Nova's entry of a server, from a detailed list or alone, into a Server.

    :param volume_root: see :func:`has_volume_root`
    :raises CloudError: when Nova hides the server's host from these credentials
    """
    if "name" not in found:
        # While its cell is down, Nova shows of a single server the request, but no name
        # and no host.
        return unknown_server(found["id"])
    if _HOST not in found:
        raise _hidden("os_compute_api:os-extended-server-attributes")
    flavor = found["flavor"]
    # Nova shows an empty text for a server that boots from a volume.
    source = found.get("image") or {}
    return Server(
        id=found["id"],
        name=found["name"],
        host=found[_HOST],
        status=found["status"],
        vcpus=flavor["vcpus"],
        extra_specs=dict(flavor.get("extra_specs") or {}),
        task=found.get("OS-EXT-STS:task_state"),
        project=found.get("tenant_id") or "",
        node=found.get("OS-EXT-SRV-ATTR:hypervisor_hostname"),
        flavor=flavor.get("original_name") or "",
        memory_mb=flavor.get("ram") or 0,
        disk_gb=flavor.get("disk") or 0,
        # Swap is in MiB, and Nova counts it in whole GiB.
        other_disks_gb=_other_disks_gb(flavor.get("ephemeral"), flavor.get("swap")),
        image=source.get("id"),
        volume_root=volume_root,
        fault=(found.get("fault") or {}).get("message") or "",
        availability_zone=found.get("OS-EXT-AZ:availability_zone") or "",
        bound_zone=found.get(BOUND_ZONE) or "",
        created=found.get("created") or "",
        updated=found.get("updated") or "",
        launched=found.get("OS-SRV-USG:launched_at") or "",
    )


def unknown_server(uuid: str) -> Server:
    """Return a Server of which only the ID is known, as its cell is down."""
    return Server(uuid, uuid, None, _CELL_IS_DOWN, 0, {})


def _hidden(rule: str) -> CloudError:
    return CloudError(
        "Nova tells only administrators on which host and CPUs a server is: use such "
        f"credentials (--os-cloud), or let policy.yaml give {rule} to a role",
        403,
    )


def root_device(found: Mapping[str, Any]) -> str | None:
    """Return the device name of a server's root disk; None until the server has one."""
    device: str | None = found.get("OS-EXT-SRV-ATTR:root_device_name")
    return device


def may_have_volume_root(found: Mapping[str, Any]) -> bool:
    """Return whether a server has an image and a volume, which may be its root disk."""
    return bool(found.get("image") and found.get(_VOLUMES))


def has_volume_root(api: API, found: Mapping[str, Any]) -> bool:
    """Ask Nova whether the root disk of a server with an image is a volume.

    Nova shows the image of such a server too; only its list of volume attachments names
    the device of each volume.
    """
    root = root_device(found)
    if root is None or not may_have_volume_root(found):
        return False
    path = f"/servers/{quote(found['id'])}/os-volume_attachments"
    try:
        attached = api.nova("GET", path, key="volumeAttachments")
    except NotThereError:
        return False
    return any(volume["device"] == root for volume in attached)


def one_server(api: API, uuid: str) -> Server:
    """Read one server.

    :raises NotThereError: when no server has this ID
    """
    found = api.nova("GET", f"/servers/{quote(uuid)}", key="server")
    return server(found, volume_root=has_volume_root(api, found))


def wants_topology(server: Server, properties: Mapping[str, str] | None) -> bool:
    """Return whether a server's flavor or image gives the server a NUMA topology.

    :param properties: properties of the server's image; None if unknown
    """
    named = {
        key.replace("_", ":", 1): value for key, value in (properties or {}).items()
    }
    named.update(server.extra_specs)
    if named.get(const.CPU_POLICY) == SHARED:
        # General flavors set this policy, which alone makes no NUMA topology.
        del named[const.CPU_POLICY]
    return any(key in _TOPOLOGY_KEYS or key.startswith("hw:numa_") for key in named)


def with_topology(api: API, server: Server) -> Server:
    """Return a server with its NUMA cells and pinned CPUs, as Nova reports them.

    Nova is asked because an image can ask for pinned CPUs, too.

    :raises CloudError: when Nova hides the host's NUMA nodes from these credentials
    """
    try:
        answer = api.nova("GET", f"/servers/{quote(server.id)}/topology")
    except NotThereError:
        return server
    cells = tuple(_cell(found) for found in answer["nodes"])
    if any(cell.host_node is None for cell in cells):
        raise _hidden("compute:server:topology:host:index")
    return replace(
        server,
        cells=cells,
        page_size_kb=answer.get("pagesize_kb"),
        pinned=any(cell.cpu_pinning for cell in cells),
    )


def _cell(found: Mapping[str, Any]) -> ServerCell:
    pinning = found.get("cpu_pinning") or {}
    return ServerCell(
        host_node=found.get("host_node"),
        vcpus=frozenset(found["vcpu_set"]),
        memory_mb=found["memory_mb"],
        cpu_pinning={int(vcpu): cpu for vcpu, cpu in pinning.items()},
        siblings=tuple(frozenset(core) for core in found.get("siblings") or ()),
    )


@openstack_errors()
def server_groups(api: API) -> tuple[ServerGroup, ...]:
    """Return the server groups of all projects.

    This list of Nova takes an offset instead of a marker, and its pages may be smaller
    than the limit.
    """
    path = "/os-server-groups?all_projects=1&limit=1000&offset="
    listed: list[dict[str, Any]] = []
    while page := api.nova("GET", f"{path}{len(listed)}", key="server_groups"):
        listed += page
    return tuple(
        ServerGroup(
            id=found["id"],
            name=found["name"],
            policy=found["policy"] or "",
            members=frozenset(found["members"]),
            max_server_per_host=int(found["rules"].get("max_server_per_host", 1)),
        )
        for found in {group["id"]: group for group in listed}.values()
    )


@openstack_errors()
def migrations(api: API, **query: str) -> list[Migration]:
    """Return the migrations that match a query, the newest first."""
    return [
        Migration(
            id=found["uuid"],
            server=found["instance_uuid"],
            kind=found["migration_type"] or "migration",
            status=found["status"],
            source=found.get("source_compute"),
            destination=found.get("dest_compute"),
            updated=found.get("updated_at") or found.get("created_at") or "",
        )
        for found in api.nova_list(f"/os-migrations?{urlencode(query)}", "migrations")
    ]


def flavors(api: API) -> tuple[Flavor, ...]:
    """Return all flavors; an administrator gets the private ones too."""
    return tuple(Flavor(**flavor(found)) for found in flavor_list(api))


def flavor_list(api: API) -> Iterator[dict[str, Any]]:
    return api.nova_list("/flavors/detail?is_public=None", "flavors")


def flavor(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a Flavor for Nova's entry of it."""
    return {
        "id": found["id"],
        "name": found["name"],
        "vcpus": found["vcpus"],
        "memory_mb": found["ram"],
        "disk_gb": found["disk"],
        "extra_specs": dict(found["extra_specs"]),
        "other_disks_gb": _other_disks_gb(
            found.get("OS-FLV-EXT-DATA:ephemeral"), found.get("swap")
        ),
    }


def _other_disks_gb(ephemeral_gb: int | None, swap_mb: int | str | None) -> int:
    """Return the GiB of ephemeral and swap disks, rounded up as Nova does.

    Before microversion 2.75 Nova shows a flavor without swap as ''.
    """
    return (ephemeral_gb or 0) + -(-int(swap_mb or 0) // 1024)


def images(api: API) -> tuple[Image, ...]:
    return tuple(image(found) for found in api.images())


def image(found: Mapping[str, Any]) -> Image:
    """Return an Image; Glance mixes image properties with its own members."""
    return Image(
        id=found["id"],
        name=found.get("name") or "",
        properties={
            key: value
            for key, value in found.items()
            if isinstance(value, str) and key not in IMAGE_MEMBERS
        },
        hidden=bool(found.get("os_hidden")),
        tags=frozenset(found.get("tags") or ()),
        owner=found.get("owner") or "",
        visibility=found["visibility"],
        disk_format=found.get("disk_format") or "",
        min_ram_mb=found.get("min_ram") or 0,
        min_disk_gb=found.get("min_disk") or 0,
    )


def shape(hypervisor: Mapping[str, Any]) -> HostShape | None:
    """Return the CPU shape that a hypervisor reports; None if it reports none."""
    try:
        topology = hypervisor["cpu_info"]["topology"]
        cores = int(topology["sockets"]) * int(topology["cores"])
        return HostShape(int(topology["cells"]), cores, int(topology["threads"]))
    except (KeyError, TypeError, ValueError):
        return None


def compute_host(
    found: Mapping[str, Any],
    service: Mapping[str, Any] | None,
    providers: Iterable[Provider],
    servers: Iterable[Server],
) -> ComputeHost:
    """Return a host; its cells are assumed from its provider's totals and its servers.

    :param found: Nova's entry of the hypervisor
    :param service: Nova's entry of the service; None for a host without a service
    """
    host, node = found["service"]["host"], found["hypervisor_hostname"]
    # A hypervisor's own entry shows the state and status of a service that the list
    # lacks.
    told = service or {"id": "", **{k: found[k] for k in ("state", "status")}}
    made = ComputeHost(
        host=host,
        node=node,
        provider=found["id"],
        vcpus=found.get("vcpus") or 0,
        memory_mb=found.get("memory_mb") or 0,
        shape=shape(found),
        service=told["id"],
        up=told["state"] == "up",
        enabled=told["status"] == "enabled",
        forced_down=bool(told.get("forced_down")),
        disabled_reason=told.get("disabled_reason"),
        availability_zone=told.get("zone") or "",
        capabilities={
            key: value if isinstance(value, str) else json.dumps(value)
            for key in _CAPABILITIES
            if (value := found.get(key))
        },
    )
    provider = next((p for p in providers if p.uuid == made.provider), None)
    if provider is None or made.shape is None:
        return made
    cells = assume_cells(
        made.shape,
        provider.total(const.PCPU),
        provider.total(const.VCPU),
        provider.total("MEMORY_MB"),
        [s for s in servers if s.host == host and s.node in {node, None}],
    )
    return replace(made, cells=cells, cells_source=ASSUMED)
