# SPDX-License-Identifier: Apache-2.0
"""Determine which servers may move, how, and the request of each."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.changes.migrations import bugs
from nova_perfvm.changes.migrations.estimates import Estimates
from nova_perfvm.changes.migrations.model import Move, cost_mb, request_to_move
from nova_perfvm.diagnose import moves as ways
from nova_perfvm.diagnose.nova_filters.aggregates import TENANT_KEY
from nova_perfvm.diagnose.verdicts import SchedulerSettings
from nova_perfvm.diagnose.words import in_words
from nova_perfvm.facts import Reason
from nova_perfvm.facts.demand import Request, RequestError
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.live_migration import obstacle
from nova_perfvm.facts.snapshot import Server, ServerGroup, Snapshot
from nova_perfvm.facts.snapshot.groups import AFFINITY
from nova_perfvm.policy import Policy
from nova_perfvm.rules import check_request

# Fields that the requests of servers do not depend on, and fields that a key cannot
# hold as they are.  A field that Server gets later is part of the key.
_NO_REQUEST: Final = frozenset(
    {
        *("id", "name", "host", "node", "status", "task", "fault"),
        *("created", "updated", "launched"),
        *("pinned", "cells", "page_size_kb", "pci_devices"),
    }
)
_UNHASHABLE: Final = frozenset({"extra_specs", "pci_requests"})
_KEYS: Final = tuple(
    one.name
    for one in fields(Server)
    if one.name not in _NO_REQUEST | _UNHASHABLE | {"project"}
)


@dataclass(frozen=True)
class PlanOptions:
    """An operator's options for plans.

    :ivar cold: migrate all servers cold; otherwise running servers live
    :ivar excluded: hosts and servers to leave alone, by name or ID
    :ivar any_zone: servers that Nova binds to no availability zone may leave theirs
    :ivar max_moves: the most migrations that make room; None for any number
    :ivar max_ratio: the most vCPUs for each CPU of hosts that general servers come to;
        None for Placement's allocation ratio
    :ivar time_limit_s: how long the solver may search; 0 for the simple search alone
    """

    cold: bool = False
    excluded: frozenset[str] = frozenset()
    any_zone: bool = False
    max_moves: int | None = None
    max_ratio: float | None = None
    time_limit_s: float = 10.0


@dataclass(frozen=True, eq=False)
class ServerKind:
    """The request of servers that neither the rules nor Placement distinguish.

    :ivar request: the request of one server
    :ivar cost_mb: cost of migrating one server
    :ivar wrong: why the request does not match the class that it names, on any host
    :ivar ungrouped: the kind without its server group; None if it has no group
    """

    request: Request
    cost_mb: int
    wrong: tuple[Reason, ...]
    ungrouped: ServerKind | None = None

    @property
    def bare(self) -> ServerKind:
        """The kind without its server group."""
        return self.ungrouped or self

    def grouped(self, group: ServerGroup | None) -> ServerKind:
        """Return the kind of such servers in a server group."""
        if group is None:
            return self
        request = replace(self.request, group=group)
        return replace(self, request=request, ungrouped=self)

    @property
    def mistake(self) -> str:
        """The faults of the request itself, in words; empty without faults."""
        return in_words(self.wrong)


@dataclass(eq=False)
class Planning:
    """A cloud at the beginning of a plan, with cached answers about its servers."""

    policy: Policy
    snapshot: Snapshot
    settings: SchedulerSettings
    wishes: PlanOptions = PlanOptions()
    estimates: Estimates = field(default_factory=Estimates)

    def __post_init__(self) -> None:
        self.views = views_of(self.snapshot)
        self._kinds: dict[Hashable, ServerKind] = {}
        self._kind_of: dict[str, ServerKind] = {}
        self._why_not: dict[str, str] = {}

    def kind(self, server: Server) -> ServerKind:
        """Return the kind of a server, by its request.

        :raises RequestError: when nova-api would refuse the server's flavor and image
            today
        """
        if server.id not in self._kind_of:
            kind, group = self.ungrouped(server), self.group_of(server)
            key = kind, group and group.id
            if key not in self._kinds:
                self._kinds[key] = kind.grouped(group)
            self._kind_of[server.id] = self._kinds[key]
        return self._kind_of[server.id]

    def ungrouped(self, server: Server) -> ServerKind:
        """Return the kind of a server as if it were in no server group.

        :raises RequestError: see :meth:`kind`
        """
        key = self._key(server)
        if key not in self._kinds:
            any_zone = self.wishes.any_zone
            request = request_to_move(self.snapshot, server, any_zone=any_zone)
            # Alike servers share this kind, perhaps one on this server's target.
            request = replace(request, server="", group=None)
            self._kinds[key] = self.kind_of_request(request)
        return self._kinds[key]

    def kind_of_request(self, request: Request) -> ServerKind:
        """Return a new, uncached kind for servers with a request."""
        facts = request.facts
        kind = ServerKind(
            request=replace(request, group=None),
            cost_mb=cost_mb(facts.memory_mb, pinned=facts.pinned),
            wrong=check_request(self.policy, facts),
        )
        return kind.grouped(request.group)

    def _key(self, server: Server) -> Hashable:
        return (
            *(getattr(server, name) for name in _KEYS),
            frozenset(server.extra_specs.items()),
            server.built,
            server.project if self._projects_matter else "",
            repr(server.pci_requests),
            repr(self.snapshot.held_by_ports.get(server.id)),
        )

    def group_of(self, server: Server) -> ServerGroup | None:
        return self.snapshot.group_by_server.get(server.id)

    def share_a_host(self, kind: ServerKind) -> bool:
        """Return whether new servers share a host: an affinity group without hosts."""
        group = kind.request.group
        return (
            group is not None
            and group.policy == AFFINITY
            and not self.snapshot.hosts_of(group)
        )

    @cached_property
    def _projects_matter(self) -> bool:
        return any(
            key.startswith(TENANT_KEY)
            for aggregate in self.snapshot.aggregates
            for key in aggregate.metadata
        )

    def why_not(self, server: Server) -> str:
        """Return why a server must not be moved, in words; empty if it may be."""
        if server.id not in self._why_not:
            self._why_not[server.id] = next(self._obstacles(server), "")
        return self._why_not[server.id]

    def _obstacles(self, server: Server) -> Iterator[str]:
        wishes, snapshot = self.wishes, self.snapshot
        if wishes.excluded & {server.id, server.name, server.host}:
            yield "it is excluded"
        if not server.known:
            yield "its cell is down"
        if server.id in snapshot.migrating:
            yield "a migration of it is not over: wait, or confirm or revert it"
        if any(server.id == evacuated for evacuated, _ in snapshot.left_behind):
            yield (
                "it was evacuated from a host that has not come back: start "
                "nova-compute there"
            )
        yield from self._states(server)
        group = self.group_of(server)
        if group and group.policy == AFFINITY and len(snapshot.hosts_of(group)) == 1:
            yield f"{group} is on this host alone: Nova moves no server of the group"
        host = self._services.get(server.host or "")
        if host is None or not host.compute.up:
            yield f"nova-compute on {server.host} does not run: evacuate it"
        try:
            kind = self.kind(server)
        except RequestError as exc:
            yield str(exc)
        else:
            yield from self._of_request(server, kind)

    def _of_request(self, server: Server, kind: ServerKind) -> Iterator[str]:
        request = kind.request
        if kind.wrong:
            yield f"it is not of its class: {kind.mistake}"
        if request.unseen:
            yield (
                "plans do not model the resources that Nova requests for "
                f"{', '.join(request.unseen)}"
            )
        kept = ", ".join(one.name for one in request.pci if not one.migrates_live)
        if kept and self.moves_live(server):
            yield f"with its PCI devices ({kept}) Nova migrates it cold only: --cold"
        why = obstacle(request.keys)
        if why and self.moves_live(server):
            yield f"{why}: Nova migrates it cold only: --cold"

    def _states(self, server: Server) -> Iterator[str]:
        """Yield why the server's task, status or a known bug prevents its migration."""
        kinds = ways.kinds(server)
        if not kinds:
            state = server.task or server.status
            command = ways.migrate(server.id, server.status).replace("\n", "; ")
            yield f"it is {state}: {'wait' if server.task else command}"
        elif self.wishes.cold and "cold" not in kinds:
            yield f"it is {server.status}: it can be migrated live only"
        else:
            how = "live" if self.moves_live(server) else "cold"
            if why := bugs.failing(self._bugs.get(server.id, ()), how):
                yield why

    def moves_live(self, server: Server) -> bool:
        return not self.wishes.cold and "live" in ways.kinds(server)

    def loses_limits(self, server: Server) -> bool:
        """Return whether a live migration loses the scheduler's limits by a bug."""
        met = {bug.number for bug, _ in self._bugs.get(server.id, ())}
        return const.LP_LOST_LIMITS in met and self.moves_live(server)

    @cached_property
    def _bugs(self) -> dict[str, bugs.BugHits]:
        return bugs.of_moves(self.snapshot)

    @cached_property
    def _services(self) -> dict[str, HostView]:
        return {view.host: view for view in self.views}

    @cached_property
    def targets(self) -> frozenset[str]:
        """Names of the hosts that are up, enabled and not excluded."""
        return frozenset(
            view.host
            for view in self.views
            if view.compute.up
            and view.compute.enabled
            and view.host not in self.wishes.excluded
        )

    def move(self, server: Server, source: str, target: str) -> Move:
        return Move(
            server=server.id,
            name=server.name,
            source=source,
            target=target,
            live=self.moves_live(server),
            memory_mb=server.memory_mb,
            pinned=self.kind(server).request.facts.pinned,
        )
