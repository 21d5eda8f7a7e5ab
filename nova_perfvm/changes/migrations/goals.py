# SPDX-License-Identifier: Apache-2.0
"""What plans of migrations are made for: room for VMs, an empty host, whole slots."""

from __future__ import annotations

from collections.abc import Iterator

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.failure import unsafe_hosts
from nova_perfvm.changes.migrations.model import MigrationPlan, Move, MoveError
from nova_perfvm.changes.migrations.planning import Planning, ServerKind
from nova_perfvm.changes.migrations.room import (
    Demanded,
    enlarged,
    newcomers,
)
from nova_perfvm.changes.migrations.sequence import Order, destinations, order
from nova_perfvm.changes.migrations.settling import Settling
from nova_perfvm.diagnose.capacity import request_of_class
from nova_perfvm.exceptions import unknown_host
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.snapshot import ASSUMED, Server
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import some_of

# Slots are counted without an end: more than any cloud has.
_ALL = 1_000_000
# So many VMs more than wanted are made room for, to keep room for a host's failure.
_MOST_SPARE = 4
_MOST_NAMED = 5
_UNSEEN = (
    "not in a snapshot, and so not looked at: server groups, PCI devices and ports "
    "with resources of their own; nova-scheduler does, and may refuse a migration"
)


def free(planning: Planning, request: Request, count: int) -> MigrationPlan:
    """Return the migrations after which so many new VMs find room."""
    start = Arrangement(planning)
    kind = planning.kind_of_request(request)
    wishes = planning.wishes
    have = _room(start, kind, count)
    found, gained = Order((), start), have
    spare = 0
    while gained < count and spare <= (_MOST_SPARE if wishes.keep_one else 0):
        demanded = Demanded(kind, count + spare)
        trial = enlarged(start, demanded, wishes.max_moves)
        room = _room(trial.end, kind, count)
        if room > gained:
            found, gained = trial, room
        if demanded.room(trial.end) < demanded.count:
            # There is no more to be had.
            break
        spare += 1
    reasons: list[str] = []
    if gained < count:
        reasons += _why(planning, found, count, gained)
    notes = [f"there is room for {have} of {count} already"] if have else []
    return MigrationPlan(
        moves=_moves(found, start),
        gained=gained - have,
        wanted=count - have,
        reasons=tuple(reasons),
        notes=(*notes, *_notes(planning)),
    )


def _room(arrangement: Arrangement, kind: ServerKind, count: int) -> int:
    """Return how many VMs find room, so that what is to be kept is kept."""
    most = Demanded(kind, count).room(arrangement)
    if not arrangement.planning.wishes.keep_one:
        return most
    for number in range(most, 0, -1):
        end, _ = newcomers(arrangement, kind, number)
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
    gone = [server for server in leaving if found.end.host_of(server.id) != host]
    reasons = [f"{server} stays: {planning.why_not(server)}" for server in staying]
    reasons += [
        f"{server} stays: no host was found for it, nor by migrating others"
        for server in leaving
        if server not in gone
    ]
    if planning.wishes.keep_one:
        unsafe = list(unsafe_hosts(found.end, {host}))
        if unsafe:
            reasons.append(_unsafe(unsafe))
    return MigrationPlan(
        moves=_moves(found, start),
        gained=len(gone),
        wanted=len(servers),
        reasons=tuple(reasons),
        notes=tuple(_notes(planning)),
    )


def _emptied(start: Arrangement, host: str, leaving: list[Server]) -> Order:
    """Return the order in which the most servers leave a host."""
    most = start.planning.wishes.max_moves
    together = _left(start, host, leaving, tries=400)
    if together is not None and (most is None or len(together.steps) <= most):
        return together
    found = Order((), start)
    for server in leaving:
        if found.end.host_of(server.id) != host:
            continue
        step = _left(found.end, host, [server], tries=100)
        if step is None or (
            most is not None and len(found.steps) + len(step.steps) > most
        ):
            continue
        found = found.then(step)
    return found


def _left(
    start: Arrangement, host: str, servers: list[Server], *, tries: int
) -> Order | None:
    """Return the order in which all of these servers leave a host, if one was found."""
    names = tuple(server.id for server in servers)
    lifted = start.lifted(names)
    for depth in range(3):
        settling = Settling(
            cost_of_kind,
            avoided=frozenset({host}),
            depth=depth,
            tries=tries,
            moved=frozenset(names),
        )
        end = settling.settle(lifted, tuple((name, host) for name in names))
        found = None if end is None else order(start, destinations(start, end))
        if found is not None:
            return found
    return None


def cost_of_kind(kind: ServerKind) -> int:
    """Return what one migration costs, as MiB of memory to copy."""
    return kind.cost_mb


def defragment(planning: Planning, vm_class: VMClass, budget: int) -> MigrationPlan:
    """Return the migrations after which the most slots of a class are free.

    :param budget: at most so many migrations
    """
    start = Arrangement(planning)
    demanded = slots(planning, vm_class)
    found = enlarged(start, demanded, budget)
    gained = demanded.gain(start, found.end)
    reasons = []
    if planning.wishes.keep_one and found.steps:
        unsafe = list(unsafe_hosts(found.end))
        if unsafe:
            reasons.append(_unsafe(unsafe))
    if not gained:
        reasons.append(f"no slot was found to be won by {budget} migration(s)")
        reasons += _not_moved(planning)
    return MigrationPlan(
        moves=_moves(found, start),
        gained=gained,
        wanted=max(1, gained),
        reasons=tuple(reasons),
        notes=tuple(_notes(planning)),
    )


def slots(planning: Planning, vm_class: VMClass) -> Demanded:
    """Return what slots are: room for VMs of a class, by as few moves as can be."""
    kind = planning.kind_of_request(request_of_class(planning.policy, vm_class))
    return Demanded(kind, _ALL, _moves_first)


def _moves_first(kind: ServerKind) -> int:
    """Return a weight by which fewer migrations are better, whatever they cost."""
    return (1 << 32) + kind.cost_mb


def _moves(found: Order, start: Arrangement) -> tuple[Move, ...]:
    planning = start.planning
    servers = planning.snapshot.server_by_id
    return tuple(
        planning.move(servers[step.server], step.source, step.target)
        for step in found.steps
    )


def _unsafe(hosts: list[str]) -> str:
    return (
        "no room was found for the servers of one host if it failed: "
        f"{some_of(hosts, _MOST_NAMED)}"
    )


def _why(planning: Planning, found: Order, count: int, gained: int) -> Iterator[str]:
    """Yield why there is no more room."""
    wishes = planning.wishes
    kept = ", with room kept for the failure of a host" if wishes.keep_one else ""
    yield (
        f"no migrations were found that make room for {count}{kept}, only for {gained}"
    )
    most = wishes.max_moves
    if most is not None and len(found.steps) >= most:
        yield f"there are to be no more than {most} migration(s)"
    if wishes.keep_one:
        unsafe = list(unsafe_hosts(found.end))
        if unsafe:
            yield _unsafe(unsafe)
    yield from _not_moved(planning)


def _not_moved(planning: Planning) -> Iterator[str]:
    """Yield why servers are not moved, some of them."""
    found: dict[str, list[str]] = {}
    for server in planning.snapshot.servers:
        if server.host is not None and (why := planning.why_not(server)):
            found.setdefault(why, []).append(str(server))
    for why, names in found.items():
        yield f"not moved: {some_of(names, _MOST_NAMED)}: {why}"


def _notes(planning: Planning) -> Iterator[str]:
    """Yield what a plan rests on."""
    snapshot = planning.snapshot
    if snapshot.servers:
        yield _UNSEEN
        if not planning.wishes.any_zone:
            yield "each server stays in its availability zone; --any-zone lets it leave"
    guessed = [h.host for h in snapshot.hosts if h.cells_source == ASSUMED]
    if guessed:
        yield (
            f"NUMA nodes of {len(guessed)} host(s) are {ASSUMED}: no API shows them; "
            "--from-nova-db reads them on a controller, --inventory from a file"
        )
    if any(s.image and snapshot.image_of(s) is None for s in snapshot.servers):
        yield "images that are not to be seen are taken to ask for nothing"
