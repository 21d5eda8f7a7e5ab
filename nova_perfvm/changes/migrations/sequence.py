# SPDX-License-Identifier: Apache-2.0
"""The order of migrations in which no step breaks a rule.

Where servers wait in a circle for each other to leave, one of them goes to a spare host
meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.model import Move, Weight


@dataclass(frozen=True)
class Order:
    """Migrations one after the other, and the arrangement after the last."""

    moves: tuple[Move, ...]
    end: Arrangement

    def then(self, other: Order) -> Order:
        """Return both, one after the other."""
        return Order(self.moves + other.moves, other.end)

    def weight(self, weight: Weight) -> int:
        """Return the weight of all moves together."""
        return sum(weight(move.cost_mb) for move in self.moves)

    @property
    def destinations(self) -> dict[str, str]:
        """Where each server that moves ends, by its ID."""
        return {move.server: move.target for move in self.moves}


def destinations(before: Arrangement, after: Arrangement) -> dict[str, str]:
    """Return the hosts of the servers that are elsewhere than before, by ID."""
    return {
        server.id: name
        for name, host in after.hosts.items()
        if host is not before.hosts[name]
        for server in host.view.servers
        if before.host_of(server.id) != name
    }


def find_order(start: Arrangement, wanted: Mapping[str, str]) -> Order | None:
    """Return the migrations that bring servers to hosts; None if none were found.

    :param wanted: the host of each server that moves, by its ID
    """
    by_cost = sorted(wanted, key=lambda name: (start.kind(name).cost_mb, name))
    for names in (tuple(wanted), by_cost[::-1], by_cost):
        found = _ordered(start, {name: wanted[name] for name in names})
        if found is not None:
            return found
    return None


def _ordered(start: Arrangement, wanted: Mapping[str, str]) -> Order | None:
    pending = {n: host for n, host in wanted.items() if start.host_of(n) != host}
    found = Order((), start)
    hopped: set[str] = set()
    while pending:
        step = _first_possible(found.end, pending.items()) or _aside(
            found.end, pending, hopped
        )
        if step is None:
            return None
        (move,) = step.moves
        if pending[move.server] == move.target:
            del pending[move.server]
        else:
            hopped.add(move.server)
        found = found.then(step)
    return found


def _first_possible(
    now: Arrangement, wanted: Iterable[tuple[str, str]]
) -> Order | None:
    """Return the first migration that is possible, alone."""
    for name, target in wanted:
        after = now.moved(name, target)
        if after is not None:
            source = now.host_of(name) or ""
            move = now.planning.move(now.server(name), source, target)
            return Order((move,), after)
    return None


def _aside(
    now: Arrangement, pending: Mapping[str, str], hopped: Collection[str]
) -> Order | None:
    """Return a migration to a spare host after which another one is possible."""
    for name in reversed([name for name in pending if name not in hopped]):
        others = [(n, host) for n, host in pending.items() if n != name]
        targets = now.planning.targets - {now.host_of(name)}
        for host in now.taking(now.kind(name), targets):
            step = _first_possible(now, [(name, host)])
            if step is not None and _first_possible(step.end, others) is not None:
                return step
    return None
