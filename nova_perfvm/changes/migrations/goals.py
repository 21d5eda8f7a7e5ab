# SPDX-License-Identifier: Apache-2.0
"""The goals of migration plans: room for VMs, an empty host, whole slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from nova_perfvm import solver
from nova_perfvm.changes.migrations import density, greedy, search, window
from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.model import MigrationPlan, MoveError
from nova_perfvm.changes.migrations.planning import Planning, ServerKind
from nova_perfvm.changes.migrations.scene import Goal
from nova_perfvm.changes.migrations.search import Found
from nova_perfvm.diagnose import groups
from nova_perfvm.diagnose.capacity import request_of_class
from nova_perfvm.diagnose.explain.report import NO_GROUPS, assumed_cells
from nova_perfvm.diagnose.verdicts import judge_all, unjudged
from nova_perfvm.exceptions import unknown_host
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.facts.snapshot.groups import SOFT
from nova_perfvm.generate.options import not_enforced
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import number_of, some_of

# No limit: more slots than any cloud has.
_ALL_SLOTS: Final = 1_000_000
_MOST_NAMED: Final = 5
_NO_PCI: Final = (
    "PCI devices are not seen without --from-nova-db: servers whose flavor asks for "
    "devices stay, and nova-scheduler may refuse servers whose ports have devices"
)
_UNSEEN: Final = (
    "NUMA nodes of physical networks ([neutron_physnet_*]) are not looked at: "
    "nova-scheduler checks them, and may refuse a migration"
)
_NO_SOLVER: Final = (
    "HiGHS is not installed (pip install 'CHECKOUT[plan]'): a simple search made "
    "this plan, and how far from the best it is, is not known"
)


def free(planning: Planning, request: Request, count: int) -> MigrationPlan:
    """Return the migrations after which `count` new VMs find room."""
    kind = planning.kind_of_request(request)
    plan, end = _more_room(planning, kind, count, "more VM")
    have = count - plan.wanted
    reasons: list[str] = []
    if plan.gained < plan.wanted:
        room = have + plan.gained
        reasons = [*_hopeless(planning, kind)] or [
            f"no migrations were found that make room for {count}, only for {room}"
            + _by_rules(planning),
            *_not_moved(planning),
        ]
    there = f"there is room for {have} of {count} already"
    return replace(
        plan,
        reasons=tuple(reasons),
        notes=(*([there] if have else []), *_not_judged(end, kind), *plan.notes),
    )


def _more_room(
    planning: Planning, kind: ServerKind, count: int, what: str
) -> tuple[MigrationPlan, Arrangement]:
    """Return the best plan found for more VMs, without reasons, and its arrangement.

    :param count: the VMs that are to have room, those with room already among them
    :param what: the unit of the gain
    """

    def room(now: Arrangement) -> int:
        return now.room(kind, count)

    start = Arrangement(planning)
    have = room(start)
    found = Found(start, have)
    if have < count and not kind.wrong:
        found = _best(start, Goal(kind, count), room)
    gained = room(found.end) - have
    plan = MigrationPlan(
        moves=found.end.moves,
        gained=gained,
        wanted=count - have,
        notes=tuple(_notes(found, what, gained, have, count)),
        measure=lambda now: room(Arrangement(replace(planning, snapshot=now))) - have,
    )
    return plan, found.end


def _best(start: Arrangement, goal: Goal, value: Callable[[Arrangement], int]) -> Found:
    found = Found(start, None)
    if solver.installed() and start.planning.wishes.time_limit_s:
        found = search.best(start, goal, value)
    if found.end is start and found.bound != value(start):
        # The time was over before the solver found anything, or it was not asked.
        found = found._replace(end=greedy.best(start, goal, value))
    return found


def _by_rules(planning: Planning) -> str:
    """Return an addition to a reason; empty if nova.conf enforces the rules."""
    if not any(not_enforced(planning.settings.options)):
        return ""
    return " under the rules, which nova-scheduler does not enforce: see explain"


def _hopeless(planning: Planning, kind: ServerKind) -> Iterator[str]:
    """Yield why no host can take a VM, whichever servers leave."""
    if not planning.views:
        yield "there are no compute hosts"
        return
    if kind.wrong:
        yield f"the request is not of its class: {kind.mistake}"
    zone = kind.request.availability_zone
    if zone and not any(view.in_zone(zone) for view in planning.views):
        yield f"no host is in zone {zone}, which is asked for"


def drain(
    planning: Planning, host: str, window_s: float | None = None
) -> MigrationPlan:
    """Return the migrations after which a host has no server.

    :param host: name of the host's compute service
    :param window_s: seconds in which the migrations have to end; None for any time
    :raises MoveError: when the host does not exist
    """
    start = Arrangement(planning)
    if host not in start.hosts:
        unseen = planning.snapshot.unseen_hosts
        raise MoveError(unknown_host(host, start.hosts, unseen))
    servers = start.hosts[host].view.servers

    def left(now: Arrangement) -> int:
        return len(servers) - len(now.hosts[host].view.servers)

    movable = sum(1 for _ in start.movable(host))
    found = _best(start, Goal(host=host, pushing=False), left)
    if left(found.end) < movable:
        # Servers of other hosts make room.
        more = _best(start, Goal(host=host), left)
        found = (
            more
            if left(more.end) > left(found.end)
            else found._replace(bound=more.bound, left_out=more.left_out)
        )
    moves, late = found.end.moves, dict[str, str]()
    if window_s is not None:
        end, late = window.within(planning, moves, host, window_s)
        found = found._replace(end=end)
    end = found.end
    reasons = [
        f"{server} stays: "
        + (
            late.get(server.id)
            or planning.why_not(server)
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
        reasons=(*reasons, *map(_coming, coming)),
        notes=tuple(_notes(found, "server", left(end), 0, movable)),
        left_out=tuple(move for move in moves if move not in end.moves),
        after=end.snapshot(),
        measure=lambda now: len(servers) - len(now.servers_by_host.get(host, ())),
    )


def _coming(server: Server) -> str:
    """Describe a server on another host that may still come to the drained host."""
    where = f"{server}, on {server.host or 'no host'} now, may come"
    if server.task is None and server.status == "VERIFY_RESIZE":
        return f"{where} back: confirm its migration, or revert it"
    return f"{where}: wait until its migration is over"


def defragment(planning: Planning, vm_class: VMClass) -> MigrationPlan:
    """Return the migrations after which the most slots of a class are free."""
    request = request_of_class(planning.policy, vm_class, planning.snapshot)
    kind = planning.kind_of_request(request)
    plan, _ = _more_room(planning, kind, _ALL_SLOTS, "more slot")
    reasons: tuple[str, ...] = ()
    if not plan.gained:
        budget = number_of(planning.wishes.max_moves or 0, "migration")
        why = f"no way was found to free a slot by {budget}"
        reasons = (*_hopeless(planning, kind),) or (why, *_not_moved(planning))
    return replace(plan, wanted=max(1, plan.gained), reasons=reasons)


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


def _notes(
    found: Found, what: str, gained: int, have: int, wanted: int
) -> Iterator[str]:
    """Yield the plan's distance from the best, its assumptions and its disadvantages.

    :param what: the unit of the gain
    :param have: the value of the goal before the plan
    :param wanted: the most that the goal asks for
    """
    end, planning = found.end, found.end.planning
    snapshot = planning.snapshot
    if found.bound is not None:
        yield from _gap(found, what, gained, have, wanted)
    elif not solver.installed():
        yield _NO_SOLVER
    targets = {move.target for move in end.moves}
    views = [end.hosts[name].view for name in targets]
    yield from density.of_fullest(views)
    yield from density.limit(views, end.moves, planning.wishes.max_ratio)
    yield from _worse(end)
    if (unknown := planning.settings.unknown) and end.moves:
        yield f"filters {', '.join(unknown)} are not judged, and may refuse a migration"
    if snapshot.servers:
        yield from [_NO_PCI] if snapshot.pci_aliases is None else []
        yield _UNSEEN
        if snapshot.server_groups is None:
            yield f"{NO_GROUPS}: nova-scheduler may refuse migrations for them"
        yield _zone_note(planning)
    yield from assumed_cells(snapshot.hosts)
    if any(s.image and snapshot.image_of(s) is None for s in snapshot.servers):
        yield "images that cannot be read are assumed to ask for nothing"


def _gap(found: Found, what: str, gained: int, have: int, wanted: int) -> Iterator[str]:
    """Yield how much more a plan could gain at best, as the solver has proven."""
    assert found.bound is not None
    most = max(gained, min(found.bound, wanted) - have)
    moves, budget = found.end.moves, found.end.planning.wishes.max_moves
    by = f"{number_of(gained, what)} by {number_of(len(moves), 'migration')}"
    within = "" if budget is None else f" with {number_of(budget, 'migration')}"
    among = ""
    if found.left_out:
        hosts = len(found.end.hosts) - found.left_out
        among = f" on the {hosts} hosts nearest to the goal, as no others were searched"
    if gained < most:
        possible = f"{number_of(most, what)} {'is' if most == 1 else 'are'} possible"
        yield f"{by}; at most {possible}{within}{among}"
    elif gained:
        yield f"{by}; no plan gains more{within}{among}"
    elif wanted > have:
        yield f"no plan exists{within}{among}: no arrangement of the servers helps"


def _zone_note(planning: Planning) -> str:
    """Return a note on whether servers may leave their availability zones."""
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
