# SPDX-License-Identifier: Apache-2.0
"""What credentials may not read, and the rules of oslo.policy that would let them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from nova_perfvm import constants as const
from nova_perfvm.cloud import answers, down_cells
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.facts.snapshot import (
    ASSUMED,
    ComputeHost,
    Provider,
    Server,
    assume_cells,
)
from nova_perfvm.printable import number_of

FORBIDDEN: Final = 403

# By what is read: which rules of policy.yaml (that of oslo.policy) allow it.
RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "providers": (
        "placement:resource_providers:list",
        "placement:resource_providers:inventories:list",
        "placement:resource_providers:traits:list",
        "placement:resource_providers:aggregates:list",
        "placement:resource_providers:allocations:list",
        "placement:allocations:list",
    ),
    "names": ("placement:traits:list", "placement:resource_classes:list"),
    "services": ("os_compute_api:os-services:list",),
    "hypervisors": ("os_compute_api:os-hypervisors:list-detail",),
    "aggregates": ("os_compute_api:os-aggregates:index",),
    "flavors": ("os_compute_api:os-flavor-extra-specs:index",),
    "servers": (
        "os_compute_api:servers:detail:get_all_tenants",
        "os_compute_api:os-extended-server-attributes",
    ),
    "migrations": (
        "os_compute_api:os-migrations:index",
        "os_compute_api:os-migrations:index:all_projects",
    ),
}


def gap(what: str, error: CloudError) -> str:
    """Return what is missing because it may not be read, and the remedy.

    :param what: a key of :data:`RULES`
    """
    return f"{what}: {error}, or a role that may: {', '.join(RULES[what])}"


def hidden(servers: Collection[Server]) -> Iterator[str]:
    """Say of which servers Nova hides a part from all but administrators."""
    placed = [server for server in servers if server.status == "ACTIVE"]
    homeless = sum(server.host is None for server in placed)
    if homeless:
        (*_, rule) = RULES["servers"]
        yield (
            f"servers: Nova does not tell the hosts of {homeless} of "
            f"{number_of(len(placed), 'running server')}: an administrator is told, or "
            f"a role that may: {rule}"
        )
    untold = sum(
        server.cells is None and server.extra_specs.get(const.CPU_POLICY) == "dedicated"
        for server in placed
    )
    if untold:
        yield (
            f"topologies: Nova tells only administrators the CPUs and NUMA nodes of "
            f"{number_of(untold, 'pinned server')}: use such credentials"
        )


def has_host_nodes(server: Server) -> bool:
    """Return whether Nova has told on which NUMA nodes of its host a server is."""
    return all(cell.host_node is not None for cell in server.cells or ())


def without_cpu_sets(host: ComputeHost, servers: Iterable[Server]) -> ComputeHost:
    """Return a host as it is if it has no CPU sets, which only Placement tells.

    :param servers: all that are known
    """
    if host.shape is None:
        return host
    here = [server for server in servers if server.host == host.host]
    cells = assume_cells(host.shape, 0, host.shape.cpus, host.memory_mb, here)
    return replace(host, cells=cells, cells_source=ASSUMED)


def hosts_of(
    services: Mapping[str, Mapping[str, Any]],
    providers: Iterable[Provider],
    servers: Iterable[Server],
) -> list[ComputeHost]:
    """Return the hosts that Placement has, where Nova shows no hypervisors.

    Their NUMA nodes nobody tells.
    """
    tops = [
        provider
        for provider in providers
        if provider.parent is None and provider.inventories.keys() & {"PCPU", "VCPU"}
    ]
    matched = {
        provider.uuid: name
        for name, provider in down_cells.matches(services.keys(), tops, servers)
    }
    found = []
    for top in tops:
        name = matched.get(top.uuid, top.name)
        unseen = {"host": name, "id": "", "state": "up", "status": "enabled"}
        found.append(answers.host_of_provider(top, services.get(name, unseen)))
    return found
