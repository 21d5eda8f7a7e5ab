# SPDX-License-Identifier: Apache-2.0
"""The servers on each host at one step of a plan.

An arrangement never changes: a migration makes a new one.  Both share the hosts that
stay the same, with the answers computed about these.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache

from nova_perfvm.changes.migrations.hosts import recorded, server_added
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.changes.migrations.planning import Planning, ServerKind
from nova_perfvm.diagnose import groups
from nova_perfvm.diagnose.arrivals import arrived
from nova_perfvm.diagnose.capacity import filled
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server, Snapshot
from nova_perfvm.rules import packing


class PlannedHost:
    """A host at one step of a plan, with the answers computed about it so far."""

    def __init__(self, planning: Planning, view: HostView) -> None:
        self.view = view
        self._planning = planning
        self.fits = cache(self._fits)
        self.room = cache(self._room)
        self.score = cache(self._score)

    def _fits(self, kind: ServerKind) -> bool:
        """Return whether the host would take a server of a kind."""
        if kind.wrong:
            return False
        policy, settings = self._planning.policy, self._planning.settings
        return arrived(policy, kind.request, self.view, settings, "new") is not None

    def _room(self, kind: ServerKind, most: int) -> int:
        """Return how many new servers the host would take, one after the other.

        :param most: where to stop counting
        """
        if not self.fits(kind):
            return 0
        policy, settings = self._planning.policy, self._planning.settings
        each = filled(policy, kind.request, self.view, settings)
        most = groups.room(kind.request.group, self.view, most)
        return sum(1 for _ in itertools.islice(each, most))

    def _score(self, kind: ServerKind) -> tuple[int, int, int]:
        """Return how well the host suits a server that it takes; the highest is best.

        The soft policy of the server's group comes first, then the weigher's score;
        among equal hosts the one with the least free memory is best.
        """
        policy, view = self._planning.policy, self.view
        points = packing.score(policy, kind.request.facts, view.facts)
        liking = groups.rank(kind.request.group, view)
        return (
            liking,
            points,
            view.root.used("MEMORY_MB") - view.root.total("MEMORY_MB"),
        )


class Arrangement:
    """The servers on all hosts at one step of a plan.

    :ivar hosts: by name of the compute service
    :ivar moves: the migrations that led to this arrangement, in their order
    """

    def __init__(
        self,
        planning: Planning,
        hosts: Mapping[str, PlannedHost] | None = None,
        moves: tuple[Move, ...] = (),
    ) -> None:
        self.planning = planning
        self.hosts = hosts or {
            view.host: PlannedHost(planning, view) for view in planning.views
        }
        self.moves = moves

    @property
    def cost_mb(self) -> int:
        """The cost of the migrations, as MiB of memory to copy."""
        return sum(move.cost_mb for move in self.moves)

    def host_of(self, server_id: str) -> str:
        for move in reversed(self.moves):
            if move.server == server_id:
                return move.target
        return self.planning.snapshot.server_by_id[server_id].host or ""

    def kind(self, server_id: str) -> ServerKind:
        return self.planning.kind(self.planning.snapshot.server_by_id[server_id])

    def movable(self, host: str) -> Iterator[Server]:
        """Yield the servers of a host that may be moved."""
        for server in self.hosts[host].view.servers:
            if not self.planning.why_not(server):
                yield server

    def taking(self, kind: ServerKind, among: AbstractSet[str]) -> list[str]:
        """Return the names in `among` of hosts that would take a server, best first."""
        return sorted(
            (name for name in among if self.hosts[name].fits(kind)),
            key=lambda name: (self.hosts[name].score(kind), name),
            reverse=True,
        )

    def room(self, kind: ServerKind, most: int) -> int:
        """Return how many new servers all hosts would take; one host if they share it.

        :param most: where to stop counting
        """
        rooms = (host.room(kind, most) for host in self.hosts.values())
        if self.planning.share_a_host(kind):
            return max(rooms, default=0)
        found = 0
        for room in rooms:
            found += room
            if found >= most:
                return most
        return found

    def moved(self, server_id: str, target: str) -> Arrangement | None:
        """Return the arrangement after a migration; None if the target refuses it.

        The target is judged while the server still holds its former resources.
        """
        kind, source = self.kind(server_id), self.host_of(server_id)
        if source == target:
            return self
        if not self.hosts[target].fits(kind):
            return None
        view = self.hosts[source].view
        server = next(s for s in view.servers if s.id == server_id)
        after = server_added(self.planning, kind, server, self.hosts[target].view)
        if after is None:
            return None
        move = self.planning.move(server, source, target)
        return self.changed(view.without([server]), after, move=move)

    def made(self, moves: Iterable[Move]) -> Arrangement | None:
        """Return the arrangement after some moves; None if a target refuses one."""
        now: Arrangement | None = self
        for move in moves:
            now = now and now.moved(move.server, move.target)
        return now

    def changed(self, *views: HostView, move: Move | None = None) -> Arrangement:
        """Return the arrangement with some hosts replaced.

        :param move: the migration that changed the hosts
        """
        made = {view.host: PlannedHost(self.planning, view) for view in views}
        moves = self.moves if move is None else (*self.moves, move)
        return Arrangement(self.planning, {**self.hosts, **made}, moves)

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the cloud in this arrangement."""
        before = {view.host: view for view in self.planning.views}
        views = (host.view for host in self.hosts.values())
        changed = [view for view in views if view is not before[view.host]]
        return recorded(self.planning.snapshot, changed)
