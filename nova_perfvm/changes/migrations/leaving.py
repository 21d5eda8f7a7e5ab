# SPDX-License-Identifier: Apache-2.0
"""Find migrations by which servers leave their hosts, if need be after others.

Each migration is possible at its turn: no server waits for room that a later migration
makes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.openings import openings
from nova_perfvm.changes.migrations.planning import ServerKind

# The most hosts tried for one server, and the most openings if no host takes it.
_MOST_HOSTS: Final = 3
_MOST_OPENINGS: Final = 6
# The most hosts whose loss of room is compared.
_MOST_COMPARED: Final = 8


@dataclass(frozen=True)
class HostSearch:
    """A search for new hosts of servers.

    :ivar goal: the kind of VMs that room is made for; None for none
    :ivar limit: the most VMs of the goal that are counted on a host
    :ivar avoided: hosts that no server may come to
    :ivar depth: the levels of other servers that may move to make room
    :ivar staying: servers that must not move to make room
    :ivar tries: yields one item for each host that may still be tried
    """

    goal: ServerKind | None = None
    limit: int = 1
    avoided: frozenset[str] = frozenset()
    depth: int = 0
    staying: frozenset[str] = frozenset()
    tries: Iterator[int] = field(default_factory=lambda: iter(range(200)))

    def leave(self, now: Arrangement, servers: Sequence[str]) -> Arrangement | None:
        """Return the arrangement after all servers have left; None without a way."""
        if not servers:
            return now
        first, *rest = servers
        for host in self._hosts(now, first):
            if next(self.tries, None) is None:
                return None
            after = now.moved(first, host)
            found = self.leave(after, rest) if after else None
            if found is not None:
                return found
        return self._after_others(now, first, rest) if self.depth else None

    def _after_others(
        self, now: Arrangement, server: str, rest: Sequence[str]
    ) -> Arrangement | None:
        """Let other servers make room for one server; then the rest leave."""
        others = replace(
            self, depth=self.depth - 1, staying=self.staying | {server, *rest}
        )
        found = openings(
            now, now.kind(server), self._targets(now, server), staying=others.staying
        )
        for opening in itertools.islice(found, _MOST_OPENINGS):
            after = others.leave(now, opening.servers)
            after = after.moved(server, opening.host) if after else None
            end = self.leave(after, rest) if after else None
            if end is not None:
                return end
        return None

    def _hosts(self, now: Arrangement, server: str) -> list[str]:
        """Return hosts that take a server: first those that lose no room for the goal.

        Among equal losses the weigher's choice is first.
        """
        taking = now.taking(now.kind(server), self._targets(now, server))
        goal, limit = self.goal, self.limit
        if goal is None:
            return taking[:_MOST_HOSTS]
        full = [name for name in taking if not now.hosts[name].room(goal, limit)]
        losses = dict.fromkeys(full[:_MOST_HOSTS], 0)
        if len(losses) < _MOST_HOSTS:
            for name in [name for name in taking if name not in losses][
                :_MOST_COMPARED
            ]:
                after = now.moved(server, name)
                if after is not None:
                    room = now.hosts[name].room(goal, limit)
                    losses[name] = room - after.hosts[name].room(goal, limit)
        return sorted(losses, key=losses.__getitem__)[:_MOST_HOSTS]

    def _targets(self, now: Arrangement, server: str) -> frozenset[str]:
        return now.planning.targets - self.avoided - {now.host_of(server)}
