# SPDX-License-Identifier: Apache-2.0
"""Find the smallest change after which a host would take a request.

The model moves servers away and judges the host again: the result is sufficient, and
each of its servers is needed.  A single server is the minimum; for several servers, a
smaller set may exist.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.arrivals import arrived
from nova_perfvm.diagnose.verdicts import HostVerdict, SchedulerSettings, offer
from nova_perfvm.facts.demand import Request, RequestError
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server, Snapshot
from nova_perfvm.placement.candidates import DISABLED
from nova_perfvm.policy import Policy


@dataclass(frozen=True)
class Fix:
    """The change for one host.

    :ivar host: the host's name
    :ivar steps: in words; steps for the compute service come first
    :ivar servers: the servers to move away
    """

    host: str
    steps: tuple[str, ...] = ()
    servers: tuple[Server, ...] = ()

    @property
    def cost(self) -> tuple[int, int, int, str]:
        """The effort of the change, for comparison: the smallest is the best."""
        vcpus = sum(server.vcpus for server in self.servers)
        before = sum(not moves.ready(server) for server in self.servers)
        return len(self.servers), vcpus, len(self.steps) + before, self.host

    def __str__(self) -> str:
        """Return one sentence, such as ``host hp2: migrate a (ID)``."""
        parts = (*self.steps, moves.describe(self.servers))
        return f"host {self.host}: {'; '.join(filter(None, parts))}"


@dataclass
class Fixer:
    """Finds the changes after which hosts of a cloud would take a request.

    :ivar views: of all hosts
    :ivar stuck: names of hosts with servers in the way that other hosts cannot take
        together
    :ivar choices: a cache: {a server's request as text: the request, with each host
        that would take it}
    """

    policy: Policy
    snapshot: Snapshot
    request: Request
    views: Sequence[HostView]
    settings: SchedulerSettings
    stuck: list[str] = field(default_factory=list)
    choices: dict[str, list[tuple[Request, HostView]]] = field(default_factory=dict)

    def fix(self, verdict: HostVerdict) -> Fix | None:
        """Return the smallest change found for one host; None if none was found.

        Only servers that other hosts could take together are moved.
        """
        if verdict.accepted:
            return None
        view, steps = _served(verdict)

        def enough(servers: Sequence[Server]) -> bool:
            left = view.without(servers)
            return offer(self.policy, self.request, left, self.settings) is not None

        # The server itself cannot make room, nor can servers that it must be near to.
        kept = {self.request.server, *self.request.anchors}
        others = [s for s in view.servers if s.id not in kept]
        if not enough(others):
            return None
        alone = [s for s in others if self._can_leave(s)]
        servers = _smallest(alone, enough)
        if servers and len(self._leaving(servers)) < len(servers):
            servers = _smallest(self._leaving(alone), enough)
        if servers is None:
            self.stuck.append(view.name)
        if servers is None or not (servers or steps):
            return None
        return Fix(view.name, tuple(steps), servers)

    def _takes(self, view: HostView, request: Request) -> bool:
        # Servers that make room must obey the rules, as in plans.
        return offer(self.policy, request, view, self.settings.strict) is not None

    def _can_leave(self, server: Server) -> bool:
        """Return whether a server can leave its host: offloaded, or to another host."""
        if not moves.goes_elsewhere(server):
            return True
        return any(view.host != server.host for _, view in self._choices(server))

    def _leaving(self, servers: Sequence[Server]) -> list[Server]:
        """Return the servers of a host that can leave it together.

        Each server is offloaded, or goes to a host that takes it after the servers
        before it; servers with the fewest possible hosts go first.
        """
        found = [s for s in servers if not moves.goes_elsewhere(s)]
        going = [(s, self._choices(s)) for s in servers if moves.goes_elsewhere(s)]
        now: dict[str, HostView] = {}
        for server, choices in sorted(going, key=lambda one: len(one[1])):
            for request, before in choices:
                view = now.get(before.name, before)
                if view.host == server.host:
                    continue
                after = arrived(
                    self.policy, request, view, self.settings.strict, server.id
                )
                if after is not None:
                    here = (*after.view.servers, server)
                    now[view.name] = replace(after.view, servers=here)
                    found.append(server)
                    break
        return found

    def _choices(self, server: Server) -> Sequence[tuple[Request, HostView]]:
        """Return a server's request with each host that would take such a server."""
        try:
            request = moves.request_of(self.snapshot, server)
        except RequestError:
            # nova-api would refuse its flavor and image today.
            return ()
        # Without the server's ID, so that servers with equal requests share the cache,
        # and the server's own host is not excluded.
        zone = moves.zone_of(self.snapshot, server)
        request = replace(request, server="", availability_zone=zone)
        asked = repr(request)
        if asked not in self.choices:
            takers = [view for view in self.views if self._takes(view, request)]
            self.choices[asked] = [(request, view) for view in takers]
        return self.choices[asked]


def _served(verdict: HostVerdict) -> tuple[HostView, list[str]]:
    """Return the host with a running, enabled service, and the steps to get there."""
    view, host = verdict.view, verdict.view.compute
    steps = []
    if host.forced_down:
        steps.append("end its being forced down (openstack compute service set --up)")
    elif not host.up:
        steps.append("start nova-compute")
    if not host.enabled:
        steps.append("enable nova-compute (openstack compute service set --enable)")
    view = replace(view, compute=replace(host, up=True, enabled=True))
    if view.tree:
        top, *others = view.tree
        # nova-compute removes this trait when its service is enabled.
        top = replace(top, traits=top.traits - {DISABLED})
        view = replace(view, tree=(top, *others))
    return view, steps


def _smallest(
    servers: Sequence[Server], enough: Callable[[Sequence[Server]], bool]
) -> tuple[Server, ...] | None:
    if enough(()):
        return ()
    if not enough(servers):
        return None
    ordered = sorted(
        servers, key=lambda server: (server.vcpus, not moves.ready(server), server.id)
    )
    for server in ordered:
        if enough([server]):
            return (server,)
    # Remove the servers one by one, the largest first, that need not leave.
    kept = list(ordered)
    for server in reversed(ordered):
        fewer = [other for other in kept if other is not server]
        if enough(fewer):
            kept = fewer
    return tuple(kept)
