# SPDX-License-Identifier: Apache-2.0
"""Whether the servers of a failed host would fit on the other hosts.

Each server in turn goes where the weigher would put it, the costliest first.  If all
have found a host there is room; if not, another order might have found some.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Hashable, Iterator

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.diagnose import moves
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.snapshot import Server


def unsafe_hosts(now: Arrangement, ignored: Collection[str] = ()) -> Iterator[str]:
    """Yield the hosts whose servers would not find room if they failed.

    :param ignored: hosts that do not count, such as one that is given up
    """
    taken: dict[Hashable, frozenset[str]] = {}
    for name, host in now.hosts.items():
        if name in ignored or not host.view.compute.up:
            continue
        servers = list(_evacuated(now, host.view.servers))
        key = tuple(sorted(id(kind) for _, kind in servers))
        # Servers with the same requests found room, and not on this host.
        if not servers or (key in taken and name not in taken[key]):
            continue
        found = _elsewhere(now, servers, now.hosts.keys() - {name, *ignored})
        if found is None:
            yield name
        else:
            taken[key] = found


def _evacuated(
    now: Arrangement, servers: Collection[Server]
) -> Iterator[tuple[Server, ServerKind]]:
    for server in servers:
        if moves.goes_elsewhere(server):
            # Nova cannot move what nova-api would refuse today, whatever room there is.
            with contextlib.suppress(RequestError):
                yield server, now.planning.kind(server)


def _elsewhere(
    now: Arrangement, servers: list[tuple[Server, ServerKind]], among: Collection[str]
) -> frozenset[str] | None:
    """Return the hosts that servers go to; None if one finds none."""
    found = set()
    for server, kind in sorted(servers, key=lambda pair: -pair[1].cost_mb):
        taking = now.taking(kind, among)
        after = now.joined(server, kind, taking[0]) if taking else None
        if after is None:
            return None
        now = after
        found.add(taking[0])
    return frozenset(found)
