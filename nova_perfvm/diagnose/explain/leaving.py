# SPDX-License-Identifier: Apache-2.0
"""Which hosts would take a server that leaves its own, each judged by itself."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.explain.verdicts import SchedulerSettings, accepts
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server, Snapshot
from nova_perfvm.policy import Policy


class Leaving:
    """The hosts that would take servers of a cloud as it is.

    Servers that ask for the same are judged once.

    :ivar stuck: hosts on which servers are in the way that cannot leave
    """

    def __init__(
        self,
        policy: Policy,
        snapshot: Snapshot,
        views: Iterable[HostView],
        settings: SchedulerSettings,
    ) -> None:
        """Judge nothing yet.

        :param views: of all hosts
        """
        self._policy = policy
        self._snapshot = snapshot
        self._views = tuple(views)
        self._settings = settings
        self._taking: dict[str, tuple[HostView, ...]] = {}
        self.stuck: list[str] = []

    def takers(self, server: Server) -> Iterator[str]:
        """Yield the names of the other hosts that would take a server."""
        for view in self._taking_of(server):
            if view.host != server.host:
                yield view.name

    def can(self, server: Server) -> bool:
        """Return whether a server can leave its host, offloaded or to another."""
        # The first taker decides: there may be as many as hosts, for each server.
        return not moves.goes_elsewhere(server) or any(self.takers(server))

    def _taking_of(self, server: Server) -> tuple[HostView, ...]:
        try:
            request = moves.request_of(self._snapshot, server)
        except RequestError:
            # nova-api would refuse its flavor and image today.
            return ()
        asked = repr(replace(request, server=""))
        if asked not in self._taking:
            self._taking[asked] = tuple(
                view
                for view in self._views
                if accepts(self._policy, request, view, self._settings)
            )
        return self._taking[asked]
