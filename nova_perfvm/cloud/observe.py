# SPDX-License-Identifier: Apache-2.0
"""From what Nova and Placement answer to the values that plans are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from nova_perfvm import constants as const
from nova_perfvm.cloud import answers
from nova_perfvm.cloud.answers import (
    aggregates,
    names,
    provider,
    providers,
    shape,
    with_topology,
)
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError, NotThereError, openstack_errors
from nova_perfvm.exceptions import unknown_host
from nova_perfvm.facts.elastic_host import (
    ComputeService,
    ElasticHost,
    describe_consumer,
)
from nova_perfvm.facts.placement_request import elastic_traits
from nova_perfvm.facts.snapshot import Aggregate, Provider, Server
from nova_perfvm.placement.schemes import child_names, host_of_child


@openstack_errors()
def hypervisors(api: API) -> list[dict[str, Any]]:
    """Return the hypervisors of all hosts: what of a host hardly ever changes."""
    return list(api.nova_list("/os-hypervisors/detail", "hypervisors"))


@openstack_errors()
def view_host(
    api: API, host: str, among: Sequence[dict[str, Any]] | None = None
) -> ElasticHost:
    """Look at one compute host.

    :param host: its name as ``openstack compute service list`` has it, or as
        ``openstack hypervisor list``
    :param among: the hypervisors, where they are known: in a large cloud Nova takes
        seconds to list them
    :raises CloudError: when there is no such host, or not exactly one
    """
    found = _hypervisor(hypervisors(api) if among is None else among, host)
    return _view(api, found, aggregates(api), names(api))


def service_host(api: API, host: str) -> str:
    """Return what the compute service is called of a host.

    :param host: its name, or its hypervisor's
    :raises CloudError: when there is no such host, or not exactly one
    """
    found: str = _hypervisor(hypervisors(api), host)["service"]["host"]
    return found


@openstack_errors()
def view_hosts(api: API, hosts: frozenset[str]) -> list[ElasticHost]:
    """Look at the hosts that are enrolled, if only in part, and at some others.

    :raises CloudError: when one of the others does not exist
    """
    known, made = aggregates(api), names(api)
    members = {host for a in known if a.isolates for host in a.hosts}
    uuids = _elastic_roots(api, made)
    views = []
    unseen = set(hosts)
    everything = hypervisors(api)
    for hypervisor in everything:
        host, node = hypervisor["service"]["host"], hypervisor["hypervisor_hostname"]
        unseen -= {host, node}
        if host in members or hosts & {host, node} or hypervisor["id"] in uuids:
            views.append(_view(api, hypervisor, known, made))
    if unseen:
        raise CloudError(
            "; ".join(str(_unknown_host(h, everything)) for h in sorted(unseen)), 404
        )
    return views


@openstack_errors()
def stray_providers(api: API, views: list[ElasticHost]) -> tuple[tuple[str, str], ...]:
    """Return name and trait of enrolled providers that no compute host has."""
    roots = {view.root.uuid for view in views}
    return tuple(
        (p["name"], trait)
        for trait in sorted(elastic_traits(names(api)))
        for p in providers(api, required=trait)
        if p["uuid"] not in roots
    )


@openstack_errors()
def detached_children(api: API) -> tuple[Provider, ...]:
    """Return the children that were taken out of the trees of hosts, of all hosts."""
    found = (
        provider(api, entry)
        for entry in providers(api)
        if host_of_child(entry["name"]) and not entry["parent_provider_uuid"]
    )
    return tuple(child for child in found if child.detached)


@openstack_errors()
def servers(api: API, host: str | None = None) -> tuple[Server, ...]:
    """Return the servers of all projects, or those on one host."""
    query = {"all_tenants": "1"} | ({"host": host} if host else {})
    found = api.nova_list(f"/servers/detail?{urlencode(query)}", "servers")
    return tuple(answers.server(server) for server in found)


def allocation(api: API, consumer: str) -> dict[str, Any]:
    """Return all that a consumer has been allocated, as it can be put back."""
    answer: dict[str, Any] = api.placement("GET", f"/allocations/{consumer}")
    return answer


@openstack_errors()
def flavors_with_units(api: API) -> list[str]:
    """Return the names of the flavors that ask for units."""
    return sorted(
        flavor["name"]
        for flavor in answers.flavor_list(api)
        if any(key.endswith(f":{const.RC_UNIT}") for key in flavor["extra_specs"])
    )


def _hypervisor(among: Sequence[dict[str, Any]], host: str) -> dict[str, Any]:
    found = [
        hypervisor
        for hypervisor in among
        if host in {hypervisor["service"]["host"], hypervisor["hypervisor_hostname"]}
    ]
    if not found:
        raise _unknown_host(host, among)
    if len(found) > 1:
        nodes = ", ".join(hypervisor["hypervisor_hostname"] for hypervisor in found)
        raise CloudError(
            f"{host} stands for {len(found)} compute nodes, {nodes}: only hosts of one "
            "node can be elastic"
        )
    return found[0]


def _unknown_host(host: str, among: Iterable[dict[str, Any]] = ()) -> CloudError:
    known = [hypervisor["service"]["host"] for hypervisor in among]
    return CloudError(unknown_host(host, known), 404)


def _view(
    api: API,
    hypervisor: Mapping[str, Any],
    known: tuple[Aggregate, ...],
    made: frozenset[str],
) -> ElasticHost:
    host = hypervisor["service"]["host"]
    tree = providers(api, in_tree=hypervisor["id"])
    entry = next((p for p in tree if p["uuid"] == hypervisor["id"]), None)
    if entry is None:
        raise CloudError(
            f"Placement has no provider {hypervisor['id']} of {host}: is its "
            "nova-compute up, and has it reported since the service was created?",
            404,
        )
    # Before the allocations: whoever Nova has on a host has been allocated some.
    there = servers(api, host)
    root = provider(api, entry)
    below = tuple(provider(api, p) for p in tree if p["uuid"] != root.uuid)
    detached, strayed, elsewhere = _outside(api, root, {p["name"] for p in tree})
    view = ElasticHost(
        host=host,
        service=_service(api, host),
        root=root,
        below=below,
        detached=detached,
        strayed=strayed,
        elsewhere=elsewhere,
        aggregates=known,
        names=made,
        shape=shape(hypervisor),
    )
    holders = {c for p in view.children for c in p.units()}
    present = [
        server if server.id in holders else with_topology(api, server)
        for server in (_with_root_disk(api, root, server) for server in there)
    ]
    ids = {server.id for server in there}
    others = {c for p in (root, *view.children) for c in p.allocations} - ids
    return replace(
        view,
        servers=tuple(sorted(present, key=lambda server: server.id)),
        consumers={consumer: _consumer(api, consumer) for consumer in others},
    )


def _with_root_disk(api: API, root: Provider, server: Server) -> Server:
    """Look up of a server without an allocation where its root disk is."""
    if server.id in root.allocations:
        return server
    try:
        return answers.one_server(api, server.id)
    except NotThereError:
        return server


def _service(api: API, host: str) -> ComputeService:
    query = urlencode({"binary": "nova-compute", "host": host})
    found = api.nova("GET", f"/os-services?{query}", key="services")
    if not found:
        raise _unknown_host(host)
    service = found[0]
    return ComputeService(
        service["id"], service["status"] == "enabled", service.get("disabled_reason")
    )


def _elastic_roots(api: API, made: frozenset[str]) -> set[str]:
    """Return the hosts that have a trait of elastic ones, or a child with units."""
    # A child of each host has the first letter's trait.
    first = f"{const.TRAIT_CHILD}{const.CHILD_LETTERS[0].upper()}"
    traits = elastic_traits(made) | ({first} & made)
    return {
        provider["root_provider_uuid"]
        for trait in sorted(traits)
        for provider in providers(api, required=trait)
    }


def _outside(
    api: API, root: Provider, tree: set[str]
) -> tuple[tuple[Provider, ...], tuple[Provider, ...], dict[str, str]]:
    """Return what has a child's name outside the tree: see ElasticHost."""
    detached, strayed, others = [], [], {}
    for name in child_names(root.name):
        if name in tree:
            continue
        strangers = providers(api, name=name)
        if not strangers:
            # No more children than this one's letter, as far as is known.
            break
        found = provider(api, strangers[0])
        if found.detached:
            detached.append(found)
        elif found.parent is None:
            strayed.append(found)
        elif found.root != root.uuid:
            others[name] = found.uuid
    return tuple(detached), tuple(strayed), others


def _consumer(api: API, consumer: str) -> str:
    """Return what a consumer is that is no server on the host."""
    try:
        found = api.nova("GET", f"/servers/{quote(consumer)}", key="server")
    except NotThereError:
        return describe_consumer(consumer, None)
    return describe_consumer(consumer, answers.server(found))
