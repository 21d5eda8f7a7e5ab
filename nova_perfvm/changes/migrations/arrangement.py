# SPDX-License-Identifier: Apache-2.0
"""Which servers are on which hosts at one step of a plan.

An arrangement never changes: a migration makes a new one.  Both share the hosts that
stay the same, with all that is known about these.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from nova_perfvm.changes.migrations.hosts import server_added, server_moved
from nova_perfvm.changes.migrations.planning import Planning, ServerKind
from nova_perfvm.diagnose.arrivals import shares
from nova_perfvm.diagnose.capacity import filled
from nova_perfvm.diagnose.explain.verdicts import offer
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.rules import packing

# At most so many VMs of a flavor are counted on one host.
MOST_ROOM = 1000


class PlannedHost:
    """A host at one step of a plan, with the answers computed about it so far.

    :ivar openings: the openings found on it, by the question
    """

    def __init__(self, planning: Planning, view: HostView) -> None:
        self.view = view
        self.openings: dict[Hashable, Any] = {}
        self._planning = planning
        self._fits: dict[ServerKind, bool] = {}
        self._room: dict[ServerKind, tuple[int, int]] = {}
        self._scores: dict[ServerKind, tuple[int, int]] = {}

    def fits(self, kind: ServerKind) -> bool:
        """Return whether it would take a server."""
        if kind not in self._fits:
            self._fits[kind] = self._would_take(kind)
        return self._fits[kind]

    def _would_take(self, kind: ServerKind) -> bool:
        policy, view = self._planning.policy, self.view
        return (
            kind.right
            and (kind.allowed is None or view.host in kind.allowed)
            and offer(policy, kind.request, view, self._planning.settings, checked=True)
            is not None
            and shares(policy, kind.request.facts, view.facts) is not None
        )

    def room(self, kind: ServerKind, most: int = MOST_ROOM) -> int:
        """Return how many new servers it would take, one after the other.

        :param most: where to stop counting
        """
        found, counted_to = self._room.get(kind, (0, 0))
        if found == counted_to < most:
            found = 0
            if self.fits(kind):
                policy, settings = self._planning.policy, self._planning.settings
                each = filled(policy, self.view, kind.request, settings)
                found = sum(1 for _ in itertools.islice(each, most))
            self._room[kind] = found, most
        return min(found, most)

    def score(self, kind: ServerKind) -> tuple[int, int]:
        """Return how well it suits a server that it takes; the highest is best.

        This is the weigher's score; among equal hosts the fullest is best.
        """
        if kind not in self._scores:
            policy, view = self._planning.policy, self.view
            points = packing.score(policy, kind.request.facts, view.facts)
            memory = view.tree[0].used("MEMORY_MB") - view.tree[0].total("MEMORY_MB")
            self._scores[kind] = points, memory
        return self._scores[kind]


class Arrangement:
    """Servers on hosts.

    :ivar hosts: by name of the compute service
    :ivar floating: servers that have left a host and not reached another, by ID
    """

    def __init__(
        self,
        planning: Planning,
        hosts: Mapping[str, PlannedHost] | None = None,
        where: Mapping[str, str] | None = None,
        floating: Mapping[str, Server] | None = None,
    ) -> None:
        self.planning = planning
        self.hosts = hosts or {
            view.host: PlannedHost(planning, view) for view in planning.views
        }
        self._where = where or {}
        self.floating = floating or {}

    def host_of(self, server_id: str) -> str | None:
        """Return the host of a server; None if it floats or has none."""
        if server_id in self.floating:
            return None
        if server_id in self._where:
            return self._where[server_id]
        return self.planning.snapshot.server_by_id[server_id].host

    def server(self, server_id: str) -> Server:
        """Return a server as this arrangement has it."""
        if server_id in self.floating:
            return self.floating[server_id]
        host = self.hosts[self.host_of(server_id) or ""]
        return next(s for s in host.view.servers if s.id == server_id)

    def kind(self, server_id: str) -> ServerKind:
        """Return what a server of the cloud asks for."""
        return self.planning.kind(self.planning.snapshot.server_by_id[server_id])

    def movable(self, host: str) -> Iterator[Server]:
        """Yield the servers of a host that may be moved."""
        known = self.planning.snapshot.server_by_id
        for server in self.hosts[host].view.servers:
            if server.id in known and not self.planning.why_not(known[server.id]):
                yield server

    def taking(
        self, kind: ServerKind, among: Collection[str] | None = None
    ) -> list[str]:
        """Return the hosts that would take a server, the best first.

        :param among: names of hosts; None for all
        """
        hosts = self.hosts
        return sorted(
            (n for n in (hosts if among is None else among) if hosts[n].fits(kind)),
            key=lambda name: (hosts[name].score(kind), name),
            reverse=True,
        )

    def lifted(self, server_ids: Collection[str]) -> Arrangement:
        """Return the arrangement after servers have left their hosts; they float."""
        leaving: dict[str, list[Server]] = {}
        for server_id in server_ids:
            host = self.host_of(server_id) or ""
            leaving.setdefault(host, []).append(self.server(server_id))
        views = [self.hosts[name].view.without(gone) for name, gone in leaving.items()]
        floating = {server.id: server for gone in leaving.values() for server in gone}
        return self._with(views, floating={**self.floating, **floating})

    def placed(self, server_id: str, host: str) -> Arrangement | None:
        """Return it after a floating server has come to a host; None if refused."""
        view = self._with_server(self.floating[server_id], self.kind(server_id), host)
        if view is None:
            return None
        floating = {k: v for k, v in self.floating.items() if k != server_id}
        return self._with([view], {server_id: host}, floating)

    def joined(self, server: Server, kind: ServerKind, host: str) -> Arrangement | None:
        """Return it after a new server has come to a host; None if refused."""
        view = self._with_server(server, kind, host)
        return None if view is None else self._with([view])

    def moved(self, server_id: str, host: str) -> Arrangement | None:
        """Return it after a server has been migrated; None if the host refuses it.

        The host is checked while the server still holds its former resources.
        """
        server, kind = self.server(server_id), self.kind(server_id)
        if not self.hosts[host].fits(kind):
            return None
        views = server_moved(
            self.planning.policy,
            self.planning.settings,
            kind.request,
            server,
            self.hosts[server.host or ""].view,
            self.hosts[host].view,
        )
        return self._with(views, {server_id: host})

    def _with_server(
        self, server: Server, kind: ServerKind, host: str
    ) -> HostView | None:
        if not self.hosts[host].fits(kind):
            return None
        policy, settings = self.planning.policy, self.planning.settings
        return server_added(
            policy, settings, kind.request, server, self.hosts[host].view
        )

    def _with(
        self,
        views: Collection[HostView],
        where: Mapping[str, str] | None = None,
        floating: Mapping[str, Server] | None = None,
    ) -> Arrangement:
        """Return it with some hosts changed, and the storage that hosts share."""
        hosts = dict(self.hosts)
        for view in views:
            hosts[view.host] = PlannedHost(self.planning, view)
        shared = {p.uuid: p for view in views for p in view.sharing}
        for name, host in hosts.items() if shared else ():
            sharing = tuple(shared.get(p.uuid, p) for p in host.view.sharing)
            if any(a is not b for a, b in zip(sharing, host.view.sharing, strict=True)):
                view = replace(host.view, sharing=sharing)
                hosts[name] = PlannedHost(self.planning, view)
        return Arrangement(
            self.planning,
            hosts,
            {**self._where, **(where or {})},
            self.floating if floating is None else floating,
        )
