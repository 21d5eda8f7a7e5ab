# SPDX-License-Identifier: Apache-2.0
"""What plans of migrations are made for: room for VMs, an empty host, whole slots."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.failure import unsafe_hosts
from nova_perfvm.changes.migrations.model import MigrationPlan, MoveError
from nova_perfvm.changes.migrations.planning import Planning, ServerKind
from nova_perfvm.changes.migrations.room import (
    Demanded,
    by_cost,
    by_number,
    enlarged,
    newcomers,
)
from nova_perfvm.changes.migrations.sequence import Order, destinations, find_order
from nova_perfvm.changes.migrations.settling import Settling
from nova_perfvm.diagnose.capacity import request_of_class
from nova_perfvm.diagnose.explain.report import assumed_cells
from nova_perfvm.exceptions import unknown_host
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import number_of, some_of

# No limit: more slots than any cloud has.
_ALL = 1_000_000
# To keep room for a host's failure, a plan may make room for so many VMs more.
_MOST_SPARE = 4
_MOST_NAMED = 5
_UNSEEN = (
    "a snapshot has no server groups, PCI devices or ports with resources of their "
    "own: nova-scheduler checks these, and may refuse a migration"
)


def free(planning: Planning, request: Request, count: int) -> MigrationPlan:
    """Return the migrations after which a number of new VMs find room."""
    start = Arrangement(planning)
    kind = planning.kind_of_request(request)
    wishes = planning.wishes
    have = _room(start, kind, count)
    found, gained = Order((), start), have
    for spare in range(1 + (_MOST_SPARE if wishes.keep_one else 0)):
        if gained >= count:
            break
        demanded = Demanded(kind, count + spare)
        trial = enlarged(start, demanded, wishes.max_moves)
        room = _room(trial.end, kind, count)
        if room > gained:
            found, gained = trial, room
        if demanded.room(trial.end) < demanded.count:
            # There is no more to be had.
            break
    reasons: list[str] = []
    if gained < count:
        kept = ", with room kept for the failure of a host" if wishes.keep_one else ""
        reasons.append(
            f"no migrations were found that make room for {count}{kept}, only for "
            f"{gained}"
        )
        if wishes.max_moves is not None and len(found.moves) >= wishes.max_moves:
            reasons.append(f"--max-moves allows {wishes.max_moves}")
        reasons += [*_unsafe(found.end), *_not_moved(planning)]
    there = f"there is room for {have} of {count} already"
    return MigrationPlan(
        moves=found.moves,
        gained=gained - have,
        wanted=count - have,
        reasons=tuple(reasons),
        notes=(*([there] if have else []), *_notes(planning)),
    )


def _room(now: Arrangement, kind: ServerKind, count: int) -> int:
    """Return how many VMs find room beside the room that is to be kept."""
    most = Demanded(kind, count).room(now)
    if not now.planning.wishes.keep_one:
        return most
    for number in range(most, 0, -1):
        end, _ = newcomers(now, kind, number)
        if next(unsafe_hosts(end), None) is None:
            return number
    return 0


def drain(planning: Planning, host: str) -> MigrationPlan:
    """Return the migrations after which a host has no server.

    :param host: name of its compute service
    :raises MoveError: when there is no such host
    """
    start = Arrangement(planning)
    if host not in start.hosts:
        raise MoveError(unknown_host(host, start.hosts))
    servers = start.hosts[host].view.servers
    staying = [server for server in servers if planning.why_not(server)]
    leaving = sorted(
        (server for server in servers if server not in staying),
        key=lambda server: (-planning.kind(server).cost_mb, server.id),
    )
    found = _emptied(start, host, leaving)
    remaining = [s for s in leaving if found.end.host_of(s.id) == host]
    reasons = [f"{server} stays: {planning.why_not(server)}" for server in staying]
    reasons += [
        f"{server} stays: no host was found for it, nor by migrating others"
        for server in remaining
    ]
    return MigrationPlan(
        moves=found.moves,
        gained=len(leaving) - len(remaining),
        wanted=len(servers),
        reasons=(*reasons, *_unsafe(found.end, {host})),
        notes=tuple(_notes(planning)),
    )


def _emptied(start: Arrangement, host: str, leaving: list[Server]) -> Order:
    """Return the migrations by which the most servers leave a host."""
    most = start.planning.wishes.max_moves
    together = _left(start, host, leaving, tries=400)
    if together is not None and (most is None or len(together.moves) <= most):
        return together
    found = Order((), start)
    for server in leaving:
        if found.end.host_of(server.id) == host:
            step = _left(found.end, host, [server], tries=100)
            if step is not None and (
                most is None or len(found.moves) + len(step.moves) <= most
            ):
                found = found.then(step)
    return found


def _left(
    start: Arrangement, host: str, servers: list[Server], *, tries: int
) -> Order | None:
    """Return migrations by which all of these servers leave a host; None if none."""
    names = tuple(server.id for server in servers)
    lifted = start.lifted(names)
    for depth in range(3):
        settling = Settling(
            by_cost,
            avoided=frozenset({host}),
            depth=depth,
            staying=frozenset(names),
            tries=iter(range(tries)),
        )
        end = settling.settle(lifted, tuple((name, host) for name in names))
        found = None if end is None else find_order(start, destinations(start, end))
        if found is not None:
            return found
    return None


def defragment(planning: Planning, vm_class: VMClass, budget: int) -> MigrationPlan:
    """Return the migrations after which the most slots of a class are free.

    :param budget: at most so many migrations
    """
    start = Arrangement(planning)
    demanded = slots(planning, vm_class)
    found = enlarged(start, demanded, budget)
    gained = demanded.gain(start, found.end)
    reasons = list(_unsafe(found.end)) if found.moves else []
    if not gained:
        reasons.append(
            f"no way was found to free a slot by {number_of(budget, 'migration')}"
        )
        reasons += _not_moved(planning)
    return MigrationPlan(
        moves=found.moves,
        gained=gained,
        wanted=max(1, gained),
        reasons=tuple(reasons),
        notes=tuple(_notes(planning)),
    )


def slots(planning: Planning, vm_class: VMClass) -> Demanded:
    """Return the demand for slots: room for VMs of a class, by the fewest moves."""
    kind = planning.kind_of_request(request_of_class(planning.policy, vm_class))
    return Demanded(kind, _ALL, by_number)


def _unsafe(now: Arrangement, ignored: Collection[str] = ()) -> Iterator[str]:
    """Yield which hosts must not fail, if room is to be kept for a host's failure.

    :param ignored: hosts that do not count
    """
    found = list(unsafe_hosts(now, ignored)) if now.planning.wishes.keep_one else []
    if found:
        yield (
            "no room was found for the servers of one host if it failed: "
            f"{some_of(found, _MOST_NAMED)}"
        )


def _not_moved(planning: Planning) -> Iterator[str]:
    """Yield the reasons why servers are not moved, with some of their names."""
    found: dict[str, list[str]] = {}
    for server in planning.snapshot.servers:
        if server.host is not None and (why := planning.why_not(server)):
            found.setdefault(why, []).append(str(server))
    for why, names in found.items():
        yield f"not moved: {some_of(names, _MOST_NAMED)}: {why}"


def _notes(planning: Planning) -> Iterator[str]:
    """Yield the assumptions of a plan."""
    snapshot = planning.snapshot
    if snapshot.servers:
        yield _UNSEEN
        if not planning.wishes.any_zone:
            yield "each server stays in its availability zone; --any-zone lets it leave"
    yield from assumed_cells(snapshot.hosts)
    if any(s.image and snapshot.image_of(s) is None for s in snapshot.servers):
        yield "images that cannot be read are taken to ask for nothing"
