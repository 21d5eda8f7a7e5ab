# SPDX-License-Identifier: Apache-2.0
"""Find compute hosts by name, and read the hosts that are to be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nova_perfvm.cloud.answers import Hypervisors, provider, providers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError, openstack_errors
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.exceptions import unknown_host
from nova_perfvm.facts.children import host_of_child
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.snapshot import Provider


@openstack_errors()
def hypervisors(api: API) -> Hypervisors:
    """Return all hypervisors; they hardly ever change."""
    return list(api.nova_list("/os-hypervisors/detail", "hypervisors"))


@openstack_errors()
def read_host(api: API, host: str, among: Hypervisors | None = None) -> HostView:
    """Read one compute host, which must have exactly one node.

    :param host: the host's name in ``openstack compute service list``, or in
        ``openstack hypervisor list``
    :param among: all hypervisors, if the caller has them: Nova needs seconds to list
        them in a large cloud
    :raises CloudError: when the host does not exist, has several nodes, its cell is
        down, or Placement has no provider for it
    """
    hypervisor = _find_hypervisor(hypervisors(api) if among is None else among, host)
    seen = read_snapshot(api, hosts=[hypervisor])
    view = next(iter(views_of(seen)), None)
    if view is None or not view.compute.service:
        raise CloudError(
            f"Nova has no nova-compute service of {hypervisor['service']['host']} any "
            "more, or does not reach its cell: openstack compute service list",
            404,
        )
    if not view.tree:
        raise CloudError(
            f"Placement has no provider {hypervisor['id']} of "
            f"{hypervisor['service']['host']}: is its nova-compute up, and has it "
            "reported since the service was created?",
            404,
        )
    return view


@openstack_errors()
def service_host(api: API, host: str) -> str:
    """Return the name of a host's compute service.

    :param host: the name of the compute service or of the hypervisor
    :raises CloudError: when the host does not exist, or has several nodes
    """
    found: str = _find_hypervisor(hypervisors(api), host)["service"]["host"]
    return found


@openstack_errors()
def detached_children(api: API) -> tuple[Provider, ...]:
    """Return all detached children: providers taken out of their hosts' trees."""
    found = (
        provider(api, entry)
        for entry in providers(api)
        if host_of_child(entry["name"]) and not entry["parent_provider_uuid"]
    )
    return tuple(child for child in found if child.detached)


def _find_hypervisor(among: Hypervisors, host: str) -> Mapping[str, Any]:
    found = [
        hypervisor
        for hypervisor in among
        if host in {hypervisor["service"]["host"], hypervisor["hypervisor_hostname"]}
    ]
    if not found:
        known = [hypervisor["service"]["host"] for hypervisor in among]
        raise CloudError(unknown_host(host, known), 404)
    if len(found) > 1:
        nodes = ", ".join(hypervisor["hypervisor_hostname"] for hypervisor in found)
        raise CloudError(
            f"{host} stands for {len(found)} compute nodes, {nodes}: only hosts of one "
            "node can be enrolled"
        )
    return found[0]
