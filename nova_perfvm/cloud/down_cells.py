# SPDX-License-Identifier: Apache-2.0
"""Read a cloud while the database of one of Nova's cells does not answer.

Nova walks the cells in order to list hypervisors, and fails at the first that is
down.  Of the hosts of the cells behind it the services tell which there are, and
Placement what they have; their NUMA topology nothing shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from nova_perfvm.cloud import answers
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import CloudError
from nova_perfvm.facts.snapshot import Provider, Server
from nova_perfvm.printable import some_of

_PAGE: Final = 64
# As many are named; the rest is counted.
_NAMED: Final = 3


def hypervisors(api: API) -> list[dict[str, Any]]:
    """Return those of the cells that come before the first that is down.

    :raises CloudError: when Nova refuses, rather than fails
    """
    found: list[dict[str, Any]] = []
    limit, marker = _PAGE, ""
    while limit:
        path = f"/os-hypervisors/detail?limit={limit}{marker}"
        try:
            page = api.nova("GET", path, key="hypervisors")
        except CloudError as exc:
            if 0 < exc.status < 500:
                raise
            # A page that ends before the cell that is down can be had.
            limit //= 2
            continue
        if not page:
            break
        found += page
        marker = f"&marker={page[-1]['id']}"
    return found


def servers(api: API) -> list[Server]:
    """Return what the API's own database knows of servers: their IDs.

    Nova leaves them out of lists in pages.
    """
    found = api.nova("GET", "/servers?all_tenants=1", key="servers")
    return [answers.server(server) for server in found if "name" not in server]


def matches(
    hosts: Collection[str], providers: Iterable[Provider], servers: Iterable[Server]
) -> Iterator[tuple[str, Provider]]:
    """Find the top providers of hosts by what their nodes are called.

    A server says what its host's node is called.  Where there is none, the node
    has the host's name, be it with a domain or without.
    """
    tops = [p for p in providers if p.parent is None]
    by_name = {provider.name: provider for provider in tops}
    nodes: dict[str, set[str]] = {}
    for server in servers:
        if server.host is not None and server.node is not None:
            nodes.setdefault(server.host, set()).add(server.node)
    for name in sorted(hosts):
        called = nodes.get(name) or {name} & by_name.keys()
        found = [by_name[node] for node in called if node in by_name] or [
            p for p in tops if p.name.partition(".")[0] == name.partition(".")[0]
        ]
        if len(found) == 1:
            yield name, found[0]


def gaps(
    lost: Sequence[str], rebuilt: Sequence[str], unmatched: Sequence[str]
) -> Iterator[str]:
    """Say what is missing.

    :param lost: the hosts of cells that are down
    :param rebuilt: those that were found without their hypervisors
    :param unmatched: those of cells that are up, and without a provider
    """
    yield (
        f"cells: Nova cannot reach the cell of {_named(lost)}: nothing is known of "
        "these hosts and of the servers there, nor who holds allocations of them"
    )
    if rebuilt:
        yield (
            "hypervisors: Nova lists none behind a cell that is down: the NUMA nodes "
            f"of {_named(rebuilt)} are not known"
        )
    if unmatched:
        yield (
            f"hypervisors: Nova lists none behind a cell that is down, and no provider "
            f"is called like {_named(unmatched)}: what Placement has of them is not "
            "judged"
        )


def _named(hosts: Sequence[str]) -> str:
    noun = "host" if len(hosts) == 1 else "hosts"
    return f"{noun} {some_of(hosts, _NAMED)}"
