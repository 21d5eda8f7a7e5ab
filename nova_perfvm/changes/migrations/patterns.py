# SPDX-License-Identifier: Apache-2.0
"""All that may become of each host of a small cloud: who leaves, who comes.

Every pattern is tried on the host as every other plan is: with the rules and with
Placement's arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.openings import Weight
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.changes.migrations.room import Demanded
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import Server

# More cannot be tried in minutes.
MOST_PATTERNS = 100_000


class TooLargeError(PerfVMError):
    """A cloud with too many possibilities to look at all."""


@dataclass(frozen=True)
class Pattern:
    """What may become of one host.

    :ivar leaving: IDs of the servers that leave
    :ivar coming: how many servers of each kind come
    :ivar room: so many VMs of the demanded kind it takes then
    """

    host: str
    leaving: tuple[str, ...]
    coming: tuple[tuple[ServerKind, int], ...]
    room: int


@dataclass
class Limits:
    """What no plan that is looked for goes beyond.

    :ivar weight: of all migrations together; None for any
    :ivar moves: how many there are; None for any
    :ivar tried: patterns so far
    """

    weight: int | None = None
    moves: int | None = None
    tried: int = 0

    def exceeded(self, weight: int, moves: int) -> bool:
        """Return whether so many migrations are beyond what is looked for."""
        return (self.weight is not None and weight > self.weight) or (
            self.moves is not None and moves > self.moves
        )

    def count(self) -> None:
        """Count one pattern more.

        :raises TooLargeError: when these are too many
        """
        self.tried += 1
        if self.tried > MOST_PATTERNS:
            raise TooLargeError(
                f"more than {MOST_PATTERNS} possibilities: the best plan cannot be "
                "found in such a cloud; leave --exact out, or --exclude hosts"
            )


def patterns(
    start: Arrangement, demanded: Demanded, limits: Limits
) -> Iterator[Pattern]:
    """Yield the patterns of all hosts, that of no change among each host's first.

    :param demanded: the VMs that are counted
    :raises TooLargeError: when there are too many
    """
    there = _kinds(start)
    for name in start.hosts:
        groups = _groups(start, name)
        ranges = [range(len(group) + 1) for group in groups]
        for counts in itertools.product(*ranges):
            leaving = [s for g, n in zip(groups, counts, strict=True) for s in g[:n]]
            kinds = [start.planning.kind(server) for server in leaving]
            if limits.exceeded(sum(map(demanded.weight, kinds)), len(kinds)):
                continue
            lifted = start.lifted(tuple(server.id for server in leaving))
            # Who leaves a host does not come back.
            others = [
                (kind, sum(host != name for host in hosts))
                for kind, hosts in there.items()
                if kind not in kinds
            ]
            if name not in start.planning.targets:
                others = []
            found = _filled(lifted, name, others, demanded.weight, limits)
            for coming, end in found:
                limits.count()
                room = end.hosts[name].room(demanded.kind, demanded.count)
                ids = tuple(server.id for server in leaving)
                yield Pattern(name, ids, coming, room)


def _kinds(start: Arrangement) -> dict[ServerKind, list[str]]:
    """Return the hosts of the servers of each kind that may be moved."""
    found: dict[ServerKind, list[str]] = {}
    for name in start.hosts:
        for server in start.movable(name):
            found.setdefault(start.planning.kind(server), []).append(name)
    return dict(sorted(found.items(), key=lambda item: -item[0].cost_mb))


def _groups(start: Arrangement, name: str) -> Sequence[Sequence[Server]]:
    found: dict[Hashable, list[Server]] = {}
    for server in start.movable(name):
        cells = tuple((c.host_node, len(c.cpu_pinning)) for c in server.cells or ())
        found.setdefault((start.planning.kind(server), cells), []).append(server)
    return list(found.values())


def _filled(
    now: Arrangement,
    name: str,
    kinds: Sequence[tuple[ServerKind, int]],
    weight: Weight,
    limits: Limits,
    used: tuple[int, int] = (0, 0),
) -> Iterator[tuple[tuple[tuple[ServerKind, int], ...], Arrangement]]:
    """Yield what may come to a host together, and the arrangement then."""
    if not kinds:
        yield (), now
        return
    (kind, most), *rest = kinds
    counted, end = 0, now
    while True:
        more = used[0] + counted * weight(kind), used[1] + counted
        if limits.exceeded(*more):
            return
        for others, after in _filled(end, name, rest, weight, limits, more):
            mine = ((kind, counted),) if counted else ()
            yield mine + others, after
        if counted == most:
            return
        server = now.planning.newcomer(kind, -1 - more[1])
        joined = end.joined(server, kind, name)
        if joined is None:
            return
        counted, end = counted + 1, joined
