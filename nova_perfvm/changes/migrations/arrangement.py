# SPDX-License-Identifier: Apache-2.0
"""Who is on which host, in thought; a change makes a new arrangement of the hosts.

Of a host that does not change nothing is asked twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

from nova_perfvm.changes.migrations.hosts import server_added, server_moved
from nova_perfvm.changes.migrations.planning import Planning, ServerKind
from nova_perfvm.diagnose.arrivals import shares
from nova_perfvm.diagnose.capacity import filled
from nova_perfvm.diagnose.explain.verdicts import offer
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Provider, Server
from nova_perfvm.rules import packing

# More VMs of a flavor than that are not counted on one host.
MOST_ROOM = 1000


class PlannedHost:
    """A host as it would be, and the answers about it so far."""

    __slots__ = ("_fits", "_planning", "_room", "_scores", "openings", "view")

    def __init__(self, planning: Planning, view: HostView) -> None:
        self.view = view
        # What has been found out about it elsewhere, by the question.
        self.openings: dict[Hashable, Any] = {}
        self._planning = planning
        self._fits: dict[ServerKind, bool] = {}
        self._room: dict[ServerKind, tuple[int, int]] = {}
        self._scores: dict[ServerKind, tuple[int, int]] = {}

    def fits(self, kind: ServerKind) -> bool:
        """Return whether it would take a server."""
        found = self._fits.get(kind)
        if found is None:
            found = self._fits[kind] = self._would_take(kind)
        return found

    def _would_take(self, kind: ServerKind) -> bool:
        planning, view = self._planning, self.view
        if not kind.right:
            return False
        if kind.allowed is not None and view.host.host not in kind.allowed:
            return False
        allocation = offer(
            planning.policy, kind.request, view, planning.settings, checked=True
        )
        return (
            allocation is not None
            and shares(planning.policy, kind.request.facts, view.facts) is not None
        )

    def room(self, kind: ServerKind, most: int = MOST_ROOM) -> int:
        """Return how many new servers it would take, one after the other.

        :param most: where to stop counting
        """
        found, counted_to = self._room.get(kind, (0, 0))
        if found < counted_to or counted_to >= most:
            return min(found, most)
        found = 0
        if self.fits(kind):
            planning = self._planning
            for _ in filled(
                planning.policy, self.view, kind.request, planning.settings
            ):
                found += 1
                if found >= most:
                    break
        self._room[kind] = found, most
        return found

    def score(self, kind: ServerKind) -> tuple[int, int]:
        """Return how well a server that it takes is placed there; the most is best.

        As the weigher has it; of hosts that are equal to it, the fullest.
        """
        found = self._scores.get(kind)
        if found is None:
            view = self.view
            points = packing.score(
                self._planning.policy, kind.request.facts, view.facts
            )
            top = view.tree[0]
            found = points, top.used("MEMORY_MB") - top.total("MEMORY_MB")
            self._scores[kind] = found
        return found


class Arrangement:
    """Servers on hosts.

    :ivar hosts: by name of the compute service
    :ivar floating: servers that have left one host and come to none yet, by ID
    """

    def __init__(
        self,
        planning: Planning,
        hosts: dict[str, PlannedHost] | None = None,
        where: dict[str, str] | None = None,
        floating: dict[str, Server] | None = None,
    ) -> None:
        self.planning = planning
        self.hosts = hosts or {
            view.host.host: PlannedHost(planning, view) for view in planning.views
        }
        self._where = where or {}
        self.floating = floating or {}

    def host_of(self, server_id: str) -> str | None:
        """Return where a server is; None if it floats, or is on no host."""
        if server_id in self.floating:
            return None
        if server_id in self._where:
            return self._where[server_id]
        return self.planning.snapshot.server_by_id[server_id].host

    def server(self, server_id: str) -> Server:
        """Return a server as it is here."""
        if server_id in self.floating:
            return self.floating[server_id]
        host = self.host_of(server_id)
        return next(s for s in self.hosts[host or ""].view.servers if s.id == server_id)

    def lifted(self, server_ids: tuple[str, ...]) -> Arrangement:
        """Return it when servers have left their hosts, and float."""
        leaving: dict[str, list[Server]] = {}
        for server_id in server_ids:
            leaving.setdefault(self.host_of(server_id) or "", []).append(
                self.server(server_id)
            )
        floating = dict(self.floating)
        for servers in leaving.values():
            floating |= {server.id: server for server in servers}
        changed = [
            self.hosts[name].view.without(servers) for name, servers in leaving.items()
        ]
        return self._with(changed, floating=floating)

    def placed(self, server_id: str, host: str) -> Arrangement | None:
        """Return it when a server that floats has come to a host; None if it cannot."""
        server = self.floating[server_id]
        view = self._with_server(server, host)
        if view is None:
            return None
        floating = {k: v for k, v in self.floating.items() if k != server_id}
        return self._with([view], {server_id: host}, floating)

    def moved(self, server_id: str, host: str) -> Arrangement | None:
        """Return it when a server has been migrated; None if the host refuses it.

        The host is asked while the server still has what it had.
        """
        server = self.server(server_id)
        kind, source = self.planning.kind(server), self.hosts[server.host or ""]
        if not self.hosts[host].fits(kind):
            return None
        views = server_moved(
            self.planning.policy,
            self.planning.settings,
            kind.request,
            server,
            source.view,
            self.hosts[host].view,
        )
        return self._with(list(views), {server_id: host})

    def joined(self, server: Server, kind: ServerKind, host: str) -> Arrangement | None:
        """Return it when a new server has come; None if the host refuses it."""
        view = self._with_server(server, host, kind)
        return None if view is None else self._with([view])

    def _with_server(
        self, server: Server, host: str, kind: ServerKind | None = None
    ) -> HostView | None:
        kind = kind or self.planning.kind(server)
        if not self.hosts[host].fits(kind):
            return None
        return server_added(
            self.planning.policy,
            self.planning.settings,
            kind.request,
            server,
            self.hosts[host].view,
        )

    def _with(
        self,
        views: list[HostView],
        where: dict[str, str] | None = None,
        floating: dict[str, Server] | None = None,
    ) -> Arrangement:
        hosts = dict(self.hosts)
        for view in views:
            hosts[view.host.host] = PlannedHost(self.planning, view)
        shared = {p.uuid: p for view in views for p in view.sharing}
        if shared:
            self._share(hosts, shared)
        return Arrangement(
            self.planning,
            hosts,
            {**self._where, **(where or {})},
            self.floating if floating is None else floating,
        )

    def _share(
        self, hosts: dict[str, PlannedHost], shared: dict[str, Provider]
    ) -> None:
        """Let all hosts see what is left of the storage that they share."""
        for name, host in hosts.items():
            sharing = tuple(shared.get(p.uuid, p) for p in host.view.sharing)
            if any(a is not b for a, b in zip(sharing, host.view.sharing, strict=True)):
                view = replace(host.view, sharing=sharing)
                hosts[name] = PlannedHost(self.planning, view)

    def movable(self, host: str) -> Iterator[Server]:
        """Yield the servers of a host that may be moved."""
        for server in self.hosts[host].view.servers:
            known = server.id in self.planning.snapshot.server_by_id
            if known and not self.planning.why_not(
                self.planning.snapshot.server_by_id[server.id]
            ):
                yield server
