# SPDX-License-Identifier: Apache-2.0
"""Find hosts for servers that have left theirs, if need be by moving others.

Servers leave and come all at once here;
:mod:`nova_perfvm.changes.migrations.sequence` finds the order in which they can.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.model import Weight
from nova_perfvm.changes.migrations.openings import openings
from nova_perfvm.changes.migrations.planning import ServerKind

# How many hosts are tried for one server, and how many openings if none takes it.
_MOST_HOSTS: Final = 3
_MOST_OPENINGS: Final = 6
# How many hosts that would lose room are compared by their losses.
_MOST_COMPARED: Final = 8

# IDs of servers, each with the host to which it does not return.
Floating = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Settling:
    """How servers that have left find new hosts.

    :ivar goal: the kind of VMs that room is made for; None for none
    :ivar limit: how many VMs of the goal are counted on a host
    :ivar avoided: hosts that no server may come to
    :ivar lossless: whether only hosts are chosen that lose no room for the goal
    :ivar depth: how many levels of other servers may be moved to make room
    :ivar staying: servers that are not moved to make room
    :ivar tries: has an item for each host that may still be tried
    """

    weight: Weight
    goal: ServerKind | None = None
    limit: int = 1
    avoided: frozenset[str] = frozenset()
    lossless: bool = False
    depth: int = 1
    staying: frozenset[str] = frozenset()
    tries: Iterator[int] = field(default_factory=lambda: iter(range(200)))

    def settle(self, now: Arrangement, floating: Floating) -> Arrangement | None:
        """Return an arrangement in which all have a host; None if none was found."""
        if not floating:
            return now
        (server, left), *rest = floating
        for host in self._hosts(now, server, left):
            if next(self.tries, None) is None:
                return None
            after = now.placed(server, host)
            found = None if after is None else self.settle(after, tuple(rest))
            if found is not None:
                return found
        return self._with_others(now, server, left, tuple(rest)) if self.depth else None

    def _hosts(self, now: Arrangement, server: str, left: str) -> Iterator[str]:
        """Yield hosts that take a server, the best first."""
        taking = now.taking(now.kind(server), self._targets(now, left))
        goal, limit = self.goal, self.limit
        if goal is None:
            yield from taking[:_MOST_HOSTS]
            return
        full = [name for name in taking if not now.hosts[name].room(goal, limit)]
        yield from full[:_MOST_HOSTS]
        if len(full) >= _MOST_HOSTS:
            return
        losses = {}
        for name in [name for name in taking if name not in full][:_MOST_COMPARED]:
            after = now.placed(server, name)
            if after is not None:
                room = now.hosts[name].room(goal, limit)
                losses[name] = room - after.hosts[name].room(goal, limit)
        for name in sorted(losses, key=losses.__getitem__)[:_MOST_HOSTS]:
            if losses[name] <= 0 or not self.lossless:
                yield name

    def _with_others(
        self, now: Arrangement, server: str, left: str, rest: Floating
    ) -> Arrangement | None:
        """Make room for a server by moving others, and settle those."""
        deeper = replace(self, depth=self.depth - 1, staying=self.staying | {server})
        found = openings(
            now,
            now.kind(server),
            self.weight,
            self._targets(now, left),
            staying=deeper.staying,
        )
        for opening in itertools.islice(found, _MOST_OPENINGS):
            after = now.lifted(opening.servers).placed(server, opening.host)
            if after is None:
                continue
            others = tuple((other, opening.host) for other in opening.servers)
            settled = deeper.settle(after, others + rest)
            if settled is not None:
                return settled
        return None

    def _targets(self, now: Arrangement, left: str) -> frozenset[str]:
        return now.planning.targets - self.avoided - {left}
