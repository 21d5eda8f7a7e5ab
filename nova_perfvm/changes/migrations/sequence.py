# SPDX-License-Identifier: Apache-2.0
"""The order in which servers get to their hosts, so that no step breaks a rule.

Where each of some servers waits for a host that another has to leave first, one of
them goes to a spare host meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nova_perfvm.changes.migrations.arrangement import Arrangement


@dataclass(frozen=True)
class MoveStep:
    """One migration of an order: a server's ID, and two hosts."""

    server: str
    source: str
    target: str


@dataclass(frozen=True)
class Order:
    """Steps, and the arrangement after the last of them."""

    steps: tuple[MoveStep, ...]
    end: Arrangement

    def then(self, other: Order) -> Order:
        """Return both, one after the other."""
        return Order(self.steps + other.steps, other.end)

    @property
    def cost(self) -> int:
        """What the steps cost together."""
        planning = self.end.planning
        servers = planning.snapshot.server_by_id
        return sum(planning.kind(servers[step.server]).cost_mb for step in self.steps)

    @property
    def goals(self) -> dict[str, str]:
        """Where each server that moves ends."""
        return {step.server: step.target for step in self.steps}


def destinations(before: Arrangement, after: Arrangement) -> dict[str, str]:
    """Return the hosts of the servers that are elsewhere than before."""
    found: dict[str, str] = {}
    for name, host in after.hosts.items():
        if host is before.hosts[name]:
            continue
        for server in host.view.servers:
            if before.host_of(server.id) != name:
                found[server.id] = name
    return found


def order(start: Arrangement, goals: Mapping[str, str]) -> Order | None:
    """Return the steps that bring servers to their hosts; None if none were found.

    :param goals: the host of each server that moves, by its ID
    """
    planning = start.planning
    servers = planning.snapshot.server_by_id
    by_cost = sorted(
        goals, key=lambda name: (planning.kind(servers[name]).cost_mb, name)
    )
    for names in (tuple(goals), tuple(reversed(by_cost)), tuple(by_cost)):
        found = _ordered(start, goals, names)
        if found is not None:
            return found
    return None


def _ordered(
    start: Arrangement, goals: Mapping[str, str], names: Iterable[str]
) -> Order | None:
    pending = {n: goals[n] for n in names if start.host_of(n) != goals[n]}
    now, steps, hopped = start, [], set()
    while pending:
        step = _next(now, pending.items())
        if step is None:
            step = _aside(
                now, [n for n in reversed(pending) if n not in hopped], pending
            )
            if step is None:
                return None
            hopped.add(step[0].server)
        done, now = step
        steps.append(done)
        if pending[done.server] == done.target:
            del pending[done.server]
    return Order(tuple(steps), now)


def _next(
    now: Arrangement, wanted: Iterable[tuple[str, str]]
) -> tuple[MoveStep, Arrangement] | None:
    """Return the first of the migrations that is possible."""
    for name, target in wanted:
        after = now.moved(name, target)
        if after is not None:
            return MoveStep(name, now.host_of(name) or "", target), after
    return None


def _aside(
    now: Arrangement, names: Iterable[str], pending: Mapping[str, str]
) -> tuple[MoveStep, Arrangement] | None:
    """Return a migration to a spare host after which another one is possible."""
    for name in names:
        kind = now.planning.kind(now.planning.snapshot.server_by_id[name])
        source = now.host_of(name)
        spare = sorted(
            (
                host
                for host in now.planning.targets
                if host != source and now.hosts[host].fits(kind)
            ),
            key=lambda host: (now.hosts[host].score(kind), host),
            reverse=True,
        )
        others = [(n, t) for n, t in pending.items() if n != name]
        for host in spare:
            step = _next(now, [(name, host)])
            if step is not None and _next(step[1], others) is not None:
                return step
    return None
