# SPDX-License-Identifier: Apache-2.0
"""Find single servers of a live cloud, with the CPUs that they are pinned to."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from nova_perfvm.cloud import answers, at_once, live_hosts
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError, NotThereError, openstack_errors
from nova_perfvm.cloud.snapshot import AT_ONCE
from nova_perfvm.facts.snapshot import Server


@openstack_errors()
def named(api: API, names: Iterable[str]) -> tuple[Server, ...]:
    """Return the servers with these names or IDs, each once, with their topologies.

    :raises CloudError: naming all names that no server has and all that several have;
        or when Nova hides the servers' hosts from these credentials
    """
    chosen: dict[str, Server] = {}
    problems = []
    for name in names:
        found = [
            answers.server(one) for one in _by_id(api, name) or _by_name(api, name)
        ]
        if len(found) == 1:
            chosen[found[0].id] = found[0]
        elif found:
            listed = ", ".join(f"{one.id} (project {one.project})" for one in found)
            problems.append(
                f"{len(found)} servers are called {name}: give the ID of one: {listed}"
            )
        else:
            problems.append(
                f"Nova shows no server {name}: see openstack server list --all-projects"
            )
    if problems:
        raise CloudError("; ".join(problems), 404)
    return _with_topologies(api, tuple(chosen.values()))


@openstack_errors()
def on_host(api: API, host: str) -> tuple[str, tuple[Server, ...]]:
    """Return a host's name, and all servers on the host, with their topologies.

    :param host: the name of the host's compute service or hypervisor
    :raises CloudError: when the host does not exist, or its cell is down
    """
    services = answers.compute_services(api)
    if host not in services:
        host = live_hosts.service_host(api, host)
    if host in answers.in_lost_cells(services):
        raise CloudError(
            f"Nova cannot reach the cell of {host}: its servers are not known until "
            "its database and message queue answer"
        )
    return host, _with_topologies(
        api, [answers.server(found) for found in answers.server_list(api, host)]
    )


def _by_id(api: API, text: str) -> list[dict[str, Any]]:
    try:
        uuid.UUID(text)
        return [api.nova("GET", f"/servers/{quote(text)}", key="server")]
    except (ValueError, NotThereError):
        return []


def _by_name(api: API, name: str) -> list[dict[str, Any]]:
    # Nova searches the name as a regular expression, anywhere in a server's name.
    query = urlencode({"all_tenants": "1", "name": re.escape(name)})
    found = api.nova_list(f"/servers/detail?{query}", "servers")
    return [answer for answer in found if answer.get("name") == name]


def _with_topologies(api: API, servers: Sequence[Server]) -> tuple[Server, ...]:
    def read(server: Server) -> Server:
        return server if server.host is None else answers.with_topology(api, server)

    found = {
        server.id: future.result()
        for server, future in at_once.each(read, servers, AT_ONCE)
    }
    return tuple(found[server.id] for server in servers)
