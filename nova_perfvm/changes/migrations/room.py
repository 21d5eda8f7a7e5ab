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

# How servers that leave find hosts: (whether without losing room, how many levels of
# others they may push on).  Pushing is tried where it may be cheaper.
_DIRECT: Final = ((True, 0), (False, 0))
_PUSHING: Final = ((True, 1), (True, 2), (False, 1))
# At most so many openings are tried.  Pushing takes minutes in clouds that are not
# small (in hosts), and is tried for fewer there.
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
    """The VMs that room is made for.

    :ivar count: how many are wanted in all
    :ivar weight: what the plan keeps small
    """

    kind: ServerKind
    count: int = MOST_ROOM
    weight: Weight = by_cost

    def room(self, now: Arrangement) -> int:
        """Return how many of the VMs find room, at most as many as wanted."""
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
    """Return the arrangement after as many new VMs have come as fit, and their number.

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
    """Return the migrations that make the most room, up to what is wanted.

    Openings are made one after the other, each time the cheapest per VM.

    :param most_moves: the most migrations allowed; None for any number
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
    """Return the migrations that cost the least per VM that they make room for."""
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
    """Return only needed migrations, each server straight to its host."""
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
