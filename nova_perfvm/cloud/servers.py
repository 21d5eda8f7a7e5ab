# SPDX-License-Identifier: Apache-2.0
"""Find single servers of a live cloud, with the CPUs that they own."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import quote, urlencode

from nova_perfvm.cloud import answers, at_once, live_hosts
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError, NotThereError, openstack_errors
from nova_perfvm.cloud.snapshot import AT_ONCE
from nova_perfvm.facts.snapshot import Server

_HOST: Final = "OS-EXT-SRV-ATTR:host"


def select(
    names: Iterable[str],
    look: Callable[[str], list[Server]],
    unseen: Callable[[], str],
) -> tuple[Server, ...]:
    """Return the server of each name or ID, none twice.

    :param look: returns the servers that have a name or an ID
    :param unseen: returns where nobody could look, if one is not found
    :raises CloudError: with all that are not there, and all that are several
    """
    chosen: dict[str, Server] = {}
    problems = []
    for name in names:
        found = look(name)
        if len(found) == 1:
            chosen[found[0].id] = found[0]
        elif found:
            listed = ", ".join(f"{one.id} (project {one.project})" for one in found)
            problems.append(
                f"{len(found)} servers are called {name}: give the ID of one: {listed}"
            )
        else:
            problems.append(
                f"no server {name}: see openstack server list --all-projects{unseen()}"
            )
    if problems:
        raise CloudError("; ".join(problems), 404)
    return tuple(chosen.values())


@openstack_errors()
def named(api: API, names: Iterable[str]) -> tuple[Server, ...]:
    """Return servers by names or IDs, with their topologies.

    :raises CloudError: when one is not there, several have a name, or Nova does not
        show where they are
    """

    def look(name: str) -> list[Server]:
        found = _by_id(api, name) or _by_name(api, name)
        return [_placed(answer) for answer in found]

    return _with_topologies(api, select(names, look, lambda: _unseen(api)))


@openstack_errors()
def on_host(api: API, host: str) -> tuple[str, tuple[Server, ...]]:
    """Return a host's name, and all servers on it, with their topologies.

    :param host: its service's name, or its hypervisor's
    :raises CloudError: when there is no such host, or its cell is down
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
    # Nova takes it for a regular expression that is found anywhere.
    query = urlencode({"all_tenants": "1", "name": re.escape(name)})
    found = api.nova_list(f"/servers/detail?{query}", "servers")
    return [answer for answer in found if answer.get("name") == name]


def _placed(answer: dict[str, Any]) -> Server:
    """Return a server, if Nova shows where it is."""
    if "name" in answer and _HOST not in answer:
        raise _hidden()
    return answers.server(answer)


def _with_topologies(api: API, servers: Iterable[Server]) -> tuple[Server, ...]:
    def read(server: Server) -> Server:
        if server.host is None:
            return server
        found = answers.with_topology(api, server)
        if any(cell.host_node is None for cell in found.cells or ()):
            raise _hidden()
        return found

    asked = tuple(servers)
    found = {
        server.id: future.result()
        for server, future in at_once.each(read, asked, AT_ONCE)
    }
    return tuple(found[server.id] for server in asked)


def _hidden() -> CloudError:
    return CloudError(
        "Nova tells only administrators on which host and CPUs a server is: use such "
        "credentials (--os-cloud), or --from-nova-db on a controller",
        403,
    )


def _unseen(api: API) -> str:
    """Return why a server may be there that no list has."""
    lost = answers.in_lost_cells(answers.compute_services(api))
    if not lost:
        return ""
    return (
        f"; Nova cannot reach the cell of {', '.join(sorted(lost))}, and finds a "
        "server there by its ID only"
    )
