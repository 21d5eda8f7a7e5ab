# SPDX-License-Identifier: Apache-2.0
"""Whether the servers of a host that fails find room on the others.

Each server in turn goes where the weigher would put it, the costliest first.  If all
have found a host there is room; if not, another order might have found some.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.diagnose import moves as ways
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.snapshot import Server


def unsafe_hosts(
    arrangement: Arrangement, ignored: Collection[str] = ()
) -> Iterator[str]:
    """Yield the hosts whose servers would not find room if they failed.

    :param ignored: hosts that do not count, such as one that is given up
    """
    taken: dict[Hashable, frozenset[str]] = {}
    for name, host in arrangement.hosts.items():
        if name in ignored or not host.view.host.up:
            continue
        servers = list(_evacuated(arrangement, host.view.servers))
        key = tuple(sorted(id(kind) for _, kind in servers))
        # Servers that ask for the same have found hosts that this one is none of.
        if not servers or (key in taken and name not in taken[key]):
            continue
        found = _elsewhere(arrangement, name, servers, ignored)
        if found is None:
            yield name
        else:
            taken[key] = found


def _evacuated(
    arrangement: Arrangement, servers: Collection[Server]
) -> Iterator[tuple[Server, ServerKind]]:
    for server in servers:
        if not ways.goes_elsewhere(server):
            continue
        try:
            yield server, arrangement.planning.kind(server)
        except RequestError:
            # Nova takes it nowhere, whatever room there is.
            continue


def _elsewhere(
    arrangement: Arrangement,
    name: str,
    servers: list[tuple[Server, ServerKind]],
    ignored: Collection[str],
) -> frozenset[str] | None:
    """Return the hosts that servers go to; None if one finds none."""
    found = set()
    for server, kind in sorted(servers, key=lambda pair: -pair[1].cost_mb):
        hosts = arrangement.hosts
        taking = [
            other
            for other in hosts
            if other != name and other not in ignored and hosts[other].fits(kind)
        ]
        if not taking:
            return None
        best = max(taking, key=lambda other: (hosts[other].score(kind), other))
        after = arrangement.joined(server, kind, best)
        if after is None:
            return None
        arrangement = after
        found.add(best)
    return frozenset(found)
