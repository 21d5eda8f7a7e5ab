# SPDX-License-Identifier: Apache-2.0
"""Hosts for servers that have left theirs, if need be by moving others.

Here servers leave and come in thought, all at once; in which order they can is the
question of :mod:`nova_perfvm.changes.migrations.sequence`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.openings import Weight, openings
from nova_perfvm.changes.migrations.planning import ServerKind

# How many hosts are tried for one server, and openings where none takes it.
_MOST_HOSTS: Final = 3
_MOST_OPENINGS: Final = 6
# So many hosts that would lose room are compared by how much.
_MOST_COMPARED: Final = 8


@dataclass
class Settling:
    """How servers are to be settled.

    :ivar goal: VMs of this kind are to find room; None where none are
    :ivar limit: of VMs of the goal that are counted on a host
    :ivar avoided: hosts that nobody comes to
    :ivar lossless: whether only hosts are chosen that lose no room for the goal
    :ivar depth: how often the hosts of servers may be made room for by others
    :ivar tries: how many more hosts are tried
    """

    weight: Weight
    goal: ServerKind | None = None
    limit: int = 1
    avoided: frozenset[str] = frozenset()
    lossless: bool = False
    depth: int = 1
    tries: int = 200
    moved: frozenset[str] = field(default=frozenset())

    def settle(
        self, arrangement: Arrangement, floating: tuple[tuple[str, str], ...]
    ) -> Arrangement | None:
        """Return an arrangement in which all have a host; None if none was found.

        :param floating: IDs of servers, and the host to which each does not return
        """
        if not floating:
            return arrangement
        (server_id, left), *rest = floating
        kind = arrangement.planning.kind(arrangement.server(server_id))
        for host in self._hosts(arrangement, server_id, kind, left):
            self.tries -= 1
            if self.tries < 0:
                return None
            after = arrangement.placed(server_id, host)
            found = None if after is None else self.settle(after, tuple(rest))
            if found is not None:
                return found
        if self.depth <= 0:
            return None
        return self._with_others(arrangement, server_id, kind, left, tuple(rest))

    def _hosts(
        self, arrangement: Arrangement, server_id: str, kind: ServerKind, left: str
    ) -> Iterator[str]:
        """Yield hosts that take a server, the best first."""
        hosts = arrangement.hosts
        taking = sorted(
            (
                name
                for name in arrangement.planning.targets - self.avoided
                if name != left and hosts[name].fits(kind)
            ),
            key=lambda name: (hosts[name].score(kind), name),
            reverse=True,
        )
        goal = self.goal
        if goal is None:
            yield from taking[:_MOST_HOSTS]
            return
        full = [name for name in taking if not hosts[name].room(goal, self.limit)]
        yield from full[:_MOST_HOSTS]
        if len(full) >= _MOST_HOSTS:
            return
        losses = []
        for name in [n for n in taking if n not in set(full)][:_MOST_COMPARED]:
            after = arrangement.placed(server_id, name)
            if after is not None:
                now = hosts[name].room(goal, self.limit)
                losses.append((now - after.hosts[name].room(goal, self.limit), name))
        # Sorting keeps the order of those that lose as much.
        losses.sort(key=lambda pair: pair[0])
        for loss, name in losses[:_MOST_HOSTS]:
            if not (loss > 0 and self.lossless):
                yield name

    def _with_others(
        self,
        arrangement: Arrangement,
        server_id: str,
        kind: ServerKind,
        left: str,
        rest: tuple[tuple[str, str], ...],
    ) -> Arrangement | None:
        """Make room for a server by moving others, and settle those."""
        targets = arrangement.planning.targets - self.avoided - {left}
        deeper = replace(
            self, depth=self.depth - 1, moved=self.moved | {server_id}, tries=self.tries
        )
        found = openings(
            arrangement,
            kind,
            self.weight,
            targets,
            wanted=1,
            limit=1,
            staying=deeper.moved,
        )
        for _, opening in zip(range(_MOST_OPENINGS), found, strict=False):
            after = arrangement.lifted(opening.servers).placed(server_id, opening.host)
            if after is None:
                continue
            others = tuple((other, opening.host) for other in opening.servers)
            settled = deeper.settle(after, others + rest)
            self.tries = deeper.tries
            if settled is not None:
                return settled
        return None
