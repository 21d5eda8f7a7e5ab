# SPDX-License-Identifier: Apache-2.0
"""One question answered: the verdicts on all hosts, grouped, with what helps."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from nova_perfvm import constants as const
from nova_perfvm.diagnose import moves
from nova_perfvm.diagnose.explain.fixes import Fix, fix_for, smallest
from nova_perfvm.diagnose.explain.leaving import Leaving
from nova_perfvm.diagnose.explain.verdicts import (
    HostVerdict,
    SchedulerSettings,
    judge_all,
)
from nova_perfvm.diagnose.explain.words import words
from nova_perfvm.exceptions import PerfVMError, unknown_host
from nova_perfvm.facts import Reason
from nova_perfvm.facts.demand import Request, request_for
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.snapshot import (
    ASSUMED,
    ComputeHost,
    Flavor,
    Image,
    Server,
    Snapshot,
)
from nova_perfvm.placement.candidates import DISABLED
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of, some_of
from nova_perfvm.rules import check_request

# For more servers it is not looked where they could go.
_MOST_MOVED = 4
# More names make no line.
_MOST_NAMED = 8

_Named = TypeVar("_Named", Flavor, Image, Server)


class NotFoundError(PerfVMError):
    """What was asked about is not in the cloud, or is not one thing."""


@dataclass(frozen=True)
class Row:
    """Hosts that the same speaks against.

    :ivar code: codes of the layers' first reasons; empty: they would take it
    :ivar shown: the verdict on the host that stands for all
    :ivar detail: of that host, in words
    :ivar fix: the smallest of theirs
    """

    code: str
    hosts: tuple[str, ...]
    shown: HostVerdict
    detail: str
    fix: Fix | None


@dataclass(frozen=True)
class Explanation:
    """The verdicts of all hosts on one request.

    :ivar request_reasons: what is wrong with the request itself, wherever it goes
    :ivar fixes: in the order of the verdicts
    :ivar notes: what else an operator should know
    """

    request: Request
    verdicts: tuple[HostVerdict, ...]
    request_reasons: tuple[Reason, ...]
    fixes: tuple[Fix | None, ...]
    notes: tuple[str, ...]
    names: Mapping[str, str]

    @property
    def accepting(self) -> tuple[str, ...]:
        """The hosts that would take it."""
        return tuple(v.view.name for v in self.verdicts if v.accepted)

    def say(self, reasons: Iterable[Reason]) -> str:
        """Return reasons in words, one a line."""
        return "\n".join(words(reason, self.names) for reason in reasons)

    def rows(self) -> list[Row]:
        """Group the hosts; those that would take it first, then by what helps."""
        groups: dict[str, list[int]] = {}
        for index, verdict in enumerate(self.verdicts):
            groups.setdefault(verdict.code, []).append(index)
        rows = []
        for code, members in groups.items():
            verdicts = [self.verdicts[index] for index in members]
            best = smallest(self.fixes[index] for index in members)
            # The host that the remedy is for shows the arithmetic.
            shown = next(
                (v for v in verdicts if best and v.view.name == best.host), verdicts[0]
            )
            rows.append(
                Row(
                    code=code,
                    hosts=tuple(verdict.view.name for verdict in verdicts),
                    shown=shown,
                    detail=self.say(shown.reasons) or "\n".join(shown.notes),
                    fix=best,
                )
            )
        return sorted(rows, key=_order)


def _order(row: Row) -> tuple[bool, bool, tuple[int, int, int, str], int, str]:
    cost = row.fix.cost if row.fix else (0, 0, 0, "")
    return bool(row.code), row.fix is None, cost, -len(row.hosts), row.code


def request_of(
    snapshot: Snapshot,
    *,
    flavor: str | None = None,
    image: str | None = None,
    server: str | None = None,
    volume_backed: bool | None = None,
    availability_zone: str = "",
    project: str = "",
) -> tuple[Request, tuple[str, ...]]:
    """Return the request to explain, and what is to be said about it.

    :param flavor: name or ID; None if a server is named
    :param image: name or ID
    :param server: name or ID
    :raises NotFoundError: when there is no such thing, or more than one
    :raises RequestError: when nova-api would refuse it
    """
    if server is not None:
        found = _one("server", server, snapshot.servers)
        if not found.known:
            raise NotFoundError(
                f"nothing is known of server {found.id}: its cell is down"
            )
        # Of a server on no host Nova shows the zone that was asked for.
        zone = "" if found.host else found.availability_zone
        request = replace(
            moves.request_of(snapshot, found),
            availability_zone=availability_zone or zone,
            project=project or found.project,
        )
        return request, tuple(_about(snapshot, found))
    wanted = _one("flavor", flavor or "", snapshot.flavors)
    chosen = None
    if image is not None:
        if snapshot.images is None:
            gap = next((gap for gap in snapshot.gaps if gap.startswith("images")), "")
            raise NotFoundError(
                f"the images could not be listed ({gap}): leave --image out, and the "
                "image is taken to ask for nothing"
            )
        # A hidden one only if no other is called so, as the client does.
        shown = [i for i in snapshot.images if not i.hidden and image in {i.id, i.name}]
        chosen = _one("image", image, shown or snapshot.images)
    if volume_backed is None and wanted.disk_gb:
        volume_backed = False
    request = request_for(
        wanted,
        chosen,
        volume_backed=volume_backed,
        availability_zone=availability_zone,
        project=project,
    )
    return request, ()


def _one(kind: str, name: str, things: Iterable[_Named]) -> _Named:
    things = tuple(things)
    found = [thing for thing in things if thing.id == name] or [
        thing for thing in things if thing.name == name
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFoundError(
            f"there is no {kind} {name!r}: see openstack {kind} list"
            f"{' --all-projects' if kind == 'server' else ''}"
        )
    ids = ", ".join(thing.id for thing in found[:5])
    raise NotFoundError(f"{len(found)} {kind}s are called {name!r}: name the ID: {ids}")


def _about(snapshot: Snapshot, server: Server) -> Iterator[str]:
    if server.fault:
        yield f"{server.name} is {server.status}: {server.fault.strip()}"
    if server.host:
        yield (
            f"{server.name} is {server.status} on {server.host}: explained is a move "
            "of it, while it is still counted there"
        )
    if server.image and snapshot.image_of(server) is None:
        yield "its image is not to be seen, and is taken to ask for nothing"


def explain(
    policy: Policy,
    snapshot: Snapshot,
    request: Request,
    settings: SchedulerSettings,
    *,
    host: str | None = None,
    offered: frozenset[str] | None = None,
) -> Explanation:
    """Judge all hosts, or one.

    :param host: name of a compute host or of its node
    :param offered: UUIDs of the hosts' providers for which Placement itself has
        candidates; None where it was not asked
    :raises NotFoundError: when there is no such host
    """
    everything = views_of(snapshot)
    views = everything
    if host is not None:
        views = tuple(v for v in views if host in {v.host, v.compute.node})
        if not views and host in snapshot.unseen_hosts:
            raise NotFoundError(
                f"nothing is known of host {host}: its cell is down, so that "
                "nova-scheduler leaves it out"
            )
        if not views:
            raise NotFoundError(unknown_host(host, (v.host for v in everything)))
    verdicts = judge_all(policy, request, views, settings, cloud=everything)
    notes = []
    if offered is not None:
        compared = [_compared(verdict, offered) for verdict in verdicts]
        verdicts = tuple(verdict for verdict, _ in compared)
        notes += [note for _, note in compared if note]
    leaving = Leaving(policy, snapshot, everything, settings)
    fixes = tuple(fix_for(policy, request, v, settings, leaving) for v in verdicts)
    reasons = check_request(policy, request.facts)
    best = smallest(fixes)
    if not any(v.accepted for v in verdicts):
        if best is not None:
            notes += _moves(leaving, best)
        elif leaving.stuck:
            hosts = some_of(leaving.stuck, _MOST_NAMED)
            notes.append(f"servers are in the way that no other host takes: {hosts}")
    return Explanation(
        request=request,
        verdicts=verdicts,
        request_reasons=reasons,
        fixes=fixes,
        notes=(*_warnings(request, verdicts), *notes),
        names={server.id: server.name for server in snapshot.servers},
    )


def _compared(verdict: HostVerdict, offered: frozenset[str]) -> tuple[HostVerdict, str]:
    """Let Placement's own answer count, and say where it is another."""
    view = verdict.view
    theirs = view.compute.provider in offered
    if theirs == (not verdict.placement):
        return verdict, ""
    if theirs:
        note = (
            f"host {view.name}: Placement itself offers it, though by its inventories "
            f"and allocations: {'; '.join(words(r) for r in verdict.placement)}"
        )
        return replace(verdict, placement=()), note
    if view.tree and DISABLED in view.tree[0].traits:
        # The service says so already.
        return verdict, ""
    note = (
        f"host {view.name}: Placement itself does not offer it; the reason is unknown"
    )
    return replace(verdict, placement=(Reason(const.PLACEMENT_REFUSED, {}),)), note


def assumed_cells(hosts: Iterable[ComputeHost]) -> Iterator[str]:
    """Yield that the NUMA nodes of hosts are assumed, if those of some are."""
    count = sum(host.cells_source == ASSUMED for host in hosts)
    if count:
        yield (
            f"NUMA nodes of {number_of(count, 'host')} are {ASSUMED}: no API shows "
            "them; --from-nova-db reads them on a controller, --inventory from a file"
        )


def _warnings(request: Request, verdicts: Iterable[HostVerdict]) -> Iterator[str]:
    yield from assumed_cells(verdict.view.compute for verdict in verdicts)
    if request.unseen:
        yield (
            f"{', '.join(request.unseen)}: what Nova asks of Placement for it is not "
            "looked at"
        )


def _moves(leaving: Leaving, fix: Fix) -> Iterator[str]:
    """Return where the servers of a fix could go, each taken by itself."""
    if len(fix.servers) > _MOST_MOVED:
        return
    for server in filter(moves.goes_elsewhere, fix.servers):
        there = tuple(leaving.takers(server))
        more = f" and {len(there) - 3} more" if len(there) > 3 else ""
        yield f"{server.name} would fit {', '.join(there[:3])}{more}"
