# SPDX-License-Identifier: Apache-2.0
"""The goals of migration plans: room for VMs, an empty host, whole slots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from nova_perfvm.changes.migrations import density, swaps
from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.leaving import HostSearch
from nova_perfvm.changes.migrations.model import MigrationPlan, MoveError
from nova_perfvm.changes.migrations.openings import openings
from nova_perfvm.changes.migrations.planning import Planning, ServerKind
from nova_perfvm.diagnose import groups
from nova_perfvm.diagnose.capacity import request_of_class
from nova_perfvm.diagnose.explain.report import NO_GROUPS, assumed_cells
from nova_perfvm.diagnose.verdicts import judge_all, unjudged
from nova_perfvm.exceptions import unknown_host
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.snapshot import Server, Snapshot
from nova_perfvm.facts.snapshot.groups import SOFT
from nova_perfvm.generate.options import not_enforced
from nova_perfvm.microversions import UNSHELVE_TO_HOST
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import number_of, some_of

# No limit: more slots than any cloud has.
ALL_SLOTS: Final = 1_000_000
# The levels of other servers that move to make room.
_DEPTHS: Final = range(3)
# The most openings tried.  Moving further servers out of the way takes minutes in
# larger clouds (more hosts than _SMALL): fewer openings are then tried so.
_MOST_TRIED: Final = 300
_SMALL: Final = 30
_MOST_PUSHED: Final = 8
# The most openings tried that move the same numbers of the same kinds: if these servers
# found no place, further ones will not.
_MOST_ALIKE: Final = 30
# The most hosts tried for servers that leave a host, together and one by one.
_MOST_TRIED_TOGETHER, _MOST_TRIED_ALONE = 400, 100
# The most servers that stay on a host for which trades are searched.
_MOST_STAYING: Final = 5
_MOST_NAMED: Final = 5
_NO_PCI: Final = (
    "PCI devices are not seen without --from-nova-db: servers whose flavor asks for "
    "devices stay, and nova-scheduler may refuse servers whose ports have devices"
)
_UNSEEN: Final = (
    "NUMA nodes of physical networks ([neutron_physnet_*]) are not looked at: "
    "nova-scheduler checks them, and may refuse a migration"
)


def free(planning: Planning, request: Request, count: int) -> MigrationPlan:
    """Return the migrations after which `count` new VMs find room."""
    start, kind = Arrangement(planning), planning.kind_of_request(request)
    end = enlarged(start, kind, count, planning.wishes.max_moves)
    end, offers = _traded(end, kind, count)
    have, gained = start.room(kind, count), end.room(kind, count)
    reasons: list[str] = []
    if gained < count:
        reasons = [*_hopeless(planning, kind)] or [
            f"no migrations were found that make room for {count}, only for {gained}"
            + _by_rules(planning),
            *offers,
            *_not_moved(planning),
        ]
    there = f"there is room for {have} of {count} already"
    return MigrationPlan(
        moves=end.moves,
        gained=gained - have,
        wanted=count - have,
        reasons=tuple(reasons),
        notes=(*([there] if have else []), *_not_judged(end, kind), *_notes(end)),
        measure=lambda now: _room(planning, now, kind, count) - have,
    )


def _by_rules(planning: Planning) -> str:
    """Return an addition to a reason if nova.conf does not enforce the rules."""
    if not any(not_enforced(planning.settings.options)):
        return ""
    return " under the rules, which nova-scheduler does not enforce: see explain"


def _room(planning: Planning, now: Snapshot, kind: ServerKind, most: int) -> int:
    return Arrangement(replace(planning, snapshot=now)).room(kind, most)


def _hopeless(planning: Planning, kind: ServerKind) -> Iterator[str]:
    """Yield why no host can take a VM, whichever servers leave."""
    if not planning.views:
        yield "there are no compute hosts"
        return
    if kind.wrong:
        yield f"the request is not of its class: {kind.mistake}"
    zone = kind.request.availability_zone
    if zone and all(zone != view.compute.availability_zone for view in planning.views):
        yield f"no host is in zone {zone}, which is asked for"


def drain(planning: Planning, host: str) -> MigrationPlan:
    """Return the migrations after which a host has no server.

    :param host: name of the host's compute service
    :raises MoveError: when the host does not exist
    """
    start = Arrangement(planning)
    if host not in start.hosts:
        unseen = planning.snapshot.unseen_hosts
        raise MoveError(unknown_host(host, start.hosts, unseen))
    servers = start.hosts[host].view.servers
    leaving = sorted(
        start.movable(host),
        key=lambda server: (-planning.kind(server).cost_mb, server.id),
    )
    end = _emptied(start, host, [server.id for server in leaving])
    end, offers = _left_by_trades(end, host, leaving)
    reasons = [
        f"{server} stays: "
        + (
            planning.why_not(server)
            or "no host was found for it, not even by migrating others"
        )
        for server in servers
        if end.host_of(server.id) == host
    ]
    coming = planning.snapshot.moving_by_host.get(host, ())
    return MigrationPlan(
        moves=end.moves,
        gained=len(servers) - len(reasons),
        wanted=len(servers),
        reasons=(*reasons, *map(_coming, coming), *offers),
        notes=tuple(_notes(end)),
        after=end.snapshot(),
        measure=lambda now: len(servers) - len(now.servers_by_host.get(host, ())),
    )


def _coming(server: Server) -> str:
    """Describe a server on another host that may still come to the drained host."""
    where = f"{server}, on {server.host or 'no host'} now, may come"
    if server.task is None and server.status == "VERIFY_RESIZE":
        return f"{where} back: confirm its migration, or revert it"
    return f"{where}: wait until its migration is over"


def _emptied(start: Arrangement, host: str, names: Sequence[str]) -> Arrangement:
    """Return an arrangement in which as many servers as possible have left a host."""
    end = _left(start, host, names, _MOST_TRIED_TOGETHER)
    if end is not None:
        return end
    for name in names:
        if start.host_of(name) == host:
            start = _left(start, host, [name], _MOST_TRIED_ALONE) or start
    return start


def _left(
    start: Arrangement, host: str, names: Sequence[str], tries: int
) -> Arrangement | None:
    for depth in _DEPTHS:
        leaving = HostSearch(
            avoided=frozenset({host}),
            depth=depth,
            staying=frozenset(names),
            tries=iter(range(tries)),
        )
        end = leaving.leave(start, names)
        if end is not None:
            return end
    return None


def _left_by_trades(
    end: Arrangement, host: str, servers: Sequence[Server]
) -> tuple[Arrangement, tuple[str, ...]]:
    """Let servers leave after trades of other servers; see :func:`_traded`."""
    targets = end.planning.targets - {host}
    offers: tuple[str, ...] = ()
    staying = [server.id for server in servers if end.host_of(server.id) == host]
    for server in staying[:_MOST_STAYING]:
        kind = end.kind(server)

        def room(now: Arrangement, kind: ServerKind = kind) -> int:
            return len(now.taking(kind, targets))

        end, said = _traded(end, kind, 1, room, frozenset({host}))
        offers = offers or said
        if taking := end.taking(kind, targets):
            end = end.moved(server, taking[0]) or end
    return end, offers


def _traded(
    start: Arrangement,
    kind: ServerKind,
    count: int,
    room: Callable[[Arrangement], int] | None = None,
    avoided: frozenset[str] = frozenset(),
) -> tuple[Arrangement, tuple[str, ...]]:
    """Return the arrangement after trades, and the trades that need a stopped server.

    :param room: returns the room in an arrangement, by default for VMs of the kind;
        trades are made until it is `count`
    :param avoided: hosts that no server may come to
    """
    wishes, end = start.planning.wishes, start
    room = room or (lambda now: now.room(kind, count))
    while wishes.stops is not None and room(end) < count:
        more = swaps.traded(end, kind, count, room, avoided)
        most = wishes.max_moves
        if more is None or (most is not None and len(more.moves) > most):
            break
        if not wishes.stops and any(move.how == "shelve" for move in more.moves):
            return end, (swaps.offered(end, more),)
        end = more
    return end, ()


def defragment(planning: Planning, vm_class: VMClass) -> MigrationPlan:
    """Return the migrations after which the most slots of a class are free."""
    start = Arrangement(planning)
    request = request_of_class(planning.policy, vm_class, planning.snapshot)
    kind = planning.kind_of_request(request)
    most_moves = planning.wishes.max_moves
    end = enlarged(start, kind, ALL_SLOTS, most_moves)
    offers: tuple[str, ...] = ()
    if not end.moves:
        end, offers = _traded(end, kind, ALL_SLOTS)
    have = start.room(kind, ALL_SLOTS)
    gained = end.room(kind, ALL_SLOTS) - have
    reasons: tuple[str, ...] = ()
    if not gained:
        budget = number_of(most_moves or 0, "migration")
        why = f"no way was found to free a slot by {budget}"
        reasons = (*_hopeless(planning, kind),) or (
            why,
            *offers,
            *_not_moved(planning),
        )
    return MigrationPlan(
        moves=end.moves,
        gained=gained,
        wanted=max(1, gained),
        reasons=reasons,
        notes=tuple(_notes(end)),
        measure=lambda now: _room(planning, now, kind, ALL_SLOTS) - have,
    )


def enlarged(
    start: Arrangement, kind: ServerKind, count: int, most_moves: int | None
) -> Arrangement:
    """Return the arrangement with the most room for VMs, up to `count`.

    Openings are made one after the other, each time the cheapest per VM.

    :param most_moves: the most migrations allowed; None for any number
    """
    end = start
    while end.room(kind, count) < count:
        left = None if most_moves is None else most_moves - len(end.moves)
        found = _cheapest(end, kind, count, left)
        if found is None:
            break
        end = found
    return _without_detours(start, end, kind, count)


def _cheapest(
    start: Arrangement, kind: ServerKind, count: int, most_moves: int | None
) -> Arrangement | None:
    """Return the arrangement with more room at the least cost per VM."""
    have = start.room(kind, count)
    best: tuple[float, Arrangement] | None = None
    small = len(start.hosts) <= _SMALL
    for depth in _DEPTHS:
        if best is not None and not small:
            # A solution exists, even if it is not the cheapest.
            break
        found = openings(start, kind, start.hosts, wanted=count - have, limit=count)
        tries = _MOST_TRIED if small or not depth else _MOST_PUSHED
        alike: Counter[Hashable] = Counter()
        for opening in islice(found, tries):
            least = opening.cost_mb / min(opening.gain, count - have)
            if best is not None and least >= best[0]:
                break
            kinds = tuple(start.kind(name) for name in opening.servers)
            alike[kinds] += 1
            if alike[kinds] > _MOST_ALIKE:
                continue
            leaving = HostSearch(
                goal=kind,
                limit=count,
                depth=depth,
                staying=frozenset(opening.servers),
            )
            end = leaving.leave(start, opening.servers)
            if end is None:
                continue
            gain = end.room(kind, count) - have
            moves = len(end.moves) - len(start.moves)
            if gain <= 0 or (most_moves is not None and moves > most_moves):
                continue
            price = (end.cost_mb - start.cost_mb) / gain
            if best is None or price < best[0]:
                best = price, end
    return best[1] if best else None


def _without_detours(
    start: Arrangement, end: Arrangement, kind: ServerKind, count: int
) -> Arrangement:
    """Leave out the migrations that the room does not depend on."""
    for left_out in end.moves:
        now = start.made(move for move in end.moves if move != left_out)
        if now is not None and now.room(kind, count) >= end.room(kind, count):
            end = now
    return end


def _not_moved(planning: Planning) -> Iterator[str]:
    """Yield the reasons why servers are not moved, with some of their names."""
    found: dict[str, list[str]] = {}
    for server in planning.snapshot.servers:
        if server.host is not None and (why := planning.why_not(server)):
            found.setdefault(why, []).append(str(server))
    for why, names in found.items():
        yield f"not moved: {some_of(names, _MOST_NAMED)}: {why}"


def _not_judged(end: Arrangement, kind: ServerKind) -> Iterator[str]:
    """Yield a note about filters and keys that only nova-scheduler judges."""
    planning, request = end.planning, kind.request
    views = [state.view for state in end.hosts.values()]
    verdicts = judge_all(planning.policy, request, views, planning.settings)
    if names := unjudged(planning.settings, request, verdicts):
        yield f"not judged: {', '.join(names)}; nova-scheduler may refuse the VM"


def _notes(end: Arrangement) -> Iterator[str]:
    """Yield the assumptions of a plan, and the disadvantages of its result."""
    snapshot = end.planning.snapshot
    targets = {move.target for move in end.moves if move.target}
    yield from density.of_fullest([end.hosts[name].view for name in targets])
    yield from swaps.stops(end)
    if end.planning.wishes.stops and not end.planning.unshelves_to_hosts:
        known = snapshot.microversion or "unknown"
        yield (
            f"--allow-stop: no server is stopped: Nova's API is {known}, unshelving to "
            f"a host needs {UNSHELVE_TO_HOST}"
        )
    yield from _worse(end)
    if (unknown := end.planning.settings.unknown) and end.moves:
        yield f"filters {', '.join(unknown)} are not judged, and may refuse a migration"
    if snapshot.servers:
        yield from [_NO_PCI] if snapshot.pci_aliases is None else []
        yield _UNSEEN
        if snapshot.server_groups is None:
            yield f"{NO_GROUPS}: nova-scheduler may refuse migrations for them"
        yield _zones(end.planning)
    yield from assumed_cells(snapshot.hosts)
    if any(s.image and snapshot.image_of(s) is None for s in snapshot.servers):
        yield "images that cannot be read are assumed to ask for nothing"


def _zones(planning: Planning) -> str:
    if not planning.wishes.any_zone:
        return "each server keeps to its availability zone"
    if planning.snapshot.zones_told:
        return (
            "servers that Nova binds to no availability zone may leave theirs: check "
            "that the new zone has their volumes and networks"
        )
    return (
        "servers may leave their availability zone; it is not known which servers "
        "Nova binds to their zone: nova-scheduler refuses to move such servers"
    )


def _worse(end: Arrangement) -> Iterator[str]:
    """Yield the soft server groups whose policy is met less than before."""
    servers = end.planning.snapshot.server_by_id
    moved = [end.planning.group_of(servers[move.server]) for move in end.moves]
    for group in dict.fromkeys(group for group in moved if group is not None):
        if not group.policy.startswith(SOFT):
            continue
        before = {m: s.host for m in group.members if (s := servers.get(m)) and s.host}
        was = groups.unmet(group, list(before.values()))
        now = groups.unmet(group, [end.host_of(member) for member in before])
        if now > was:
            hosts = {end.host_of(member) for member in before}
            yield (
                f"{group} is further from its policy afterwards: "
                f"{number_of(len(before), 'server')} on "
                f"{number_of(len(hosts), 'host')}, before on "
                f"{len({*before.values()})}"
            )
