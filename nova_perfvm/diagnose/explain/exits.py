# SPDX-License-Identifier: Apache-2.0
"""Whether another host would take a server that leaves its own."""

from collections.abc import Iterable
from dataclasses import replace

from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.explain.verdicts import SchedulerSettings, offer
from nova_perfvm.facts.demand import RequestError
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server, Snapshot
from nova_perfvm.policy import Policy


class Exits:
    """Whether servers of a cloud as it is could leave their hosts.

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
        self._takers: dict[str, set[str]] = {}
        self.stuck: list[str] = []

    def can(self, server: Server) -> bool:
        """Return whether a server can leave its host, offloaded or to another."""
        if not moves.goes_elsewhere(server):
            return True
        try:
            request = moves.request_of(self._snapshot, server)
        except RequestError:
            # nova-api would refuse its flavor and image today.
            return False
        asked = repr(replace(request, server=""))
        if asked not in self._takers:
            self._takers[asked] = {
                view.host
                for view in self._views
                if offer(self._policy, request, view, self._settings) is not None
            }
        return bool(self._takers[asked] - {server.host})
