# SPDX-License-Identifier: Apache-2.0
"""Room for VMs of one kind: how much there is, and how migrations make more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from nova_perfvm.changes.migrations.arrangement import MOST_ROOM, Arrangement
from nova_perfvm.changes.migrations.model import Weight
from nova_perfvm.changes.migrations.openings import Opening, openings
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.changes.migrations.sequence import Order, destinations, find_order
from nova_perfvm.changes.migrations.settling import Settling

# How servers are settled: without a loss of room, or with one; how deep they may
# push others on.  The second are tried where they may be cheaper than the first.
_DIRECT: Final = ((True, 0), (False, 0))
_PUSHING: Final = ((True, 1), (True, 2), (False, 1))
# So many openings are tried of those that cost less than the best way found; pushing
# takes minutes in clouds of more hosts than that, and is tried for a few there.
_MOST_TRIED: Final = 300
_SMALL: Final = 30
_MOST_PUSHED: Final = 8


def by_cost(cost_mb: int) -> int:
    """Return a weight by which cheaper migrations are better."""
    return cost_mb


def by_number(cost_mb: int) -> int:
    """Return a weight by which fewer migrations are better, whatever they cost."""
    return (1 << 32) + cost_mb


@dataclass(frozen=True)
class Demanded:
    """What room is made for.

    :ivar count: so many VMs are wanted in all
    :ivar weight: what the plan is to have the least of
    """

    kind: ServerKind
    count: int = MOST_ROOM
    weight: Weight = by_cost

    def room(self, now: Arrangement) -> int:
        """Return how many of the VMs there is room for, no more than wanted."""
        if any(host.view.sharing for host in now.hosts.values()):
            return newcomers(now, self.kind, self.count)[1]
        found = 0
        for host in now.hosts.values():
            found += host.room(self.kind, self.count - found)
            if found >= self.count:
                break
        return found

    def gain(self, before: Arrangement, after: Arrangement) -> int:
        """Return how many more VMs one arrangement has room for than another."""
        return self.room(after) - self.room(before)


def newcomers(
    now: Arrangement, kind: ServerKind, count: int
) -> tuple[Arrangement, int]:
    """Return an arrangement with so many VMs more, or as many as fit, and how many.

    Each comes to the host that the weigher would choose.
    """
    for number in range(count):
        taking = now.taking(kind)
        server = now.planning.newcomer(kind, number)
        after = now.joined(server, kind, taking[0]) if taking else None
        if after is None:
            return now, number
        now = after
    return now, count


def enlarged(start: Arrangement, demanded: Demanded, most_moves: int | None) -> Order:
    """Return the migrations found that give the most room, up to what is wanted.

    Opening after opening, each the cheapest for what it gives.

    :param most_moves: at most so many
    """
    done = Order((), start)
    while demanded.room(done.end) < demanded.count:
        left = None if most_moves is None else most_moves - len(done.moves)
        found = _cheapest(done.end, demanded, left)
        if found is None:
            break
        done = done.then(found)
    return _without_detours(start, demanded, done)


def _cheapest(
    start: Arrangement, demanded: Demanded, most_moves: int | None
) -> Order | None:
    """Return the migrations that cost the least for each VM that they make room for."""
    have = demanded.room(start)
    best: tuple[float, Order] | None = None
    small = len(start.hosts) <= _SMALL
    for manners in (_DIRECT, _PUSHING):
        if best is not None and manners is _PUSHING and not small:
            # There is a way, if not the cheapest.
            break
        tries = _MOST_TRIED if small or manners is _DIRECT else _MOST_PUSHED
        for opening in openings(
            start,
            demanded.kind,
            demanded.weight,
            start.hosts,
            wanted=demanded.count - have,
            limit=demanded.count,
        ):
            least = opening.cost / min(opening.gain, demanded.count - have)
            if (best is not None and least >= best[0]) or not tries:
                break
            if most_moves is not None and len(opening.servers) > most_moves:
                continue
            tries -= 1
            for way in _ways(start, demanded, opening, manners):
                gain = demanded.room(way.end) - have
                if gain <= 0 or (most_moves or len(way.moves)) < len(way.moves):
                    continue
                price = way.weight(demanded.weight) / gain
                if best is None or price < best[0]:
                    best = price, way
                if price <= least:
                    break
    return best[1] if best else None


def _ways(
    start: Arrangement,
    demanded: Demanded,
    opening: Opening,
    manners: tuple[tuple[bool, int], ...],
) -> Iterator[Order]:
    """Yield orders of migrations that let the servers of an opening leave."""
    servers = sorted(
        opening.servers, key=lambda name: (-start.kind(name).cost_mb, name)
    )
    lifted = start.lifted(servers)
    seen: list[dict[str, str]] = []
    for lossless, depth in manners:
        settling = Settling(
            demanded.weight,
            demanded.kind,
            limit=demanded.count,
            lossless=lossless,
            depth=depth,
            staying=frozenset(servers),
        )
        end = settling.settle(lifted, tuple((name, opening.host) for name in servers))
        if end is None:
            continue
        wanted = destinations(start, end)
        found = None if wanted in seen else find_order(start, wanted)
        seen.append(wanted)
        if found is not None:
            yield found


def _without_detours(start: Arrangement, demanded: Demanded, found: Order) -> Order:
    """Return the migrations that are needed: each server's at once, or none of it."""
    room = demanded.room(found.end)
    best = found

    def shortened(wanted: Mapping[str, str]) -> Order:
        order = find_order(start, wanted)
        if (
            order is not None
            and order.weight(demanded.weight) < best.weight(demanded.weight)
            and demanded.room(order.end) >= room
        ):
            return order
        return best

    best = shortened(found.destinations)
    for name in found.destinations:
        best = shortened({n: t for n, t in best.destinations.items() if n != name})
    return best
