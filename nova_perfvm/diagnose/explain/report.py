# SPDX-License-Identifier: Apache-2.0
"""Answer one question: the verdicts of all hosts, grouped, with remedies."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from nova_perfvm import constants as const
from nova_perfvm.diagnose import groups, moves
from nova_perfvm.diagnose.explain.fixes import Fix, Fixer
from nova_perfvm.diagnose.nova_filters.aggregates import TENANT_KEY, projects_of
from nova_perfvm.diagnose.verdicts import (
    TENANT_FILTER,
    HostVerdict,
    SchedulerSettings,
    judge_all,
    unjudged,
)
from nova_perfvm.exceptions import PerfVMError, unknown_host
from nova_perfvm.facts import Reason
from nova_perfvm.facts.demand import OWNED, Request, RequestError, in_cloud
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.live_migration import obstacle
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import (
    ASSUMED,
    ComputeHost,
    Flavor,
    Image,
    Server,
    ServerGroup,
    Snapshot,
)
from nova_perfvm.facts.snapshot.groups import SOFT
from nova_perfvm.placement.candidates import DISABLED
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of, some_of
from nova_perfvm.rules import check_request

# For old snapshot files, and for credentials that may not list server groups.
NO_GROUPS: Final = "there are no server groups in this snapshot"
# More names do not fit on a line.
_MOST_NAMED = 8
# Codes of hosts outside of the aggregates for which Nova asks Placement.
_OUTSIDE = frozenset({const.NOVA_AVAILABILITY_ZONE, const.PLACEMENT_TENANT})

_Named = TypeVar("_Named", Flavor, Image, Server, ServerGroup)


class NotFoundError(PerfVMError):
    """The named object is not in the cloud, or the name is ambiguous."""


@dataclass(frozen=True)
class Row:
    """Hosts with the same verdict.

    :ivar shown: the verdict on the host that is shown for all
    :ivar fix: the smallest fix among these hosts
    """

    hosts: tuple[str, ...]
    shown: HostVerdict
    fix: Fix | None


@dataclass(frozen=True)
class Explanation:
    """The verdicts of all hosts on one request.

    :ivar request: None if only Nova knows the request
    :ivar request_reasons: faults of the request itself, on whatever host
    :ivar fixes: in the order of the verdicts
    :ivar notes: further remarks for an operator
    :ivar unjudged: filters and request keys that Nova judges but this model cannot
    """

    request: Request | None
    verdicts: tuple[HostVerdict, ...]
    request_reasons: tuple[Reason, ...]
    fixes: tuple[Fix | None, ...]
    notes: tuple[str, ...]
    unjudged: tuple[str, ...] = ()

    @property
    def accepting(self) -> tuple[str, ...]:
        """The hosts that would accept the request."""
        return tuple(v.view.name for v in self.verdicts if v.accepted)

    def by_host(self) -> list[Row]:
        """Return a row for each host."""
        pairs = zip(self.verdicts, self.fixes, strict=True)
        return [Row((found.view.name,), found, fix) for found, fix in pairs]

    def rows(self) -> list[Row]:
        """Group the hosts by verdict; accepting hosts first, then the cheapest fix."""
        groups: dict[str, list[Row]] = {}
        for row in self.by_host():
            groups.setdefault(row.shown.code, []).append(row)
        rows = [
            # The figures shown are those of the host with the cheapest fix.
            replace(min(mine, key=_order), hosts=tuple(row.hosts[0] for row in mine))
            for mine in groups.values()
        ]
        return sorted(rows, key=_order)


def _order(row: Row) -> tuple[bool, bool, tuple[int, int, int, str], int, str]:
    cost = row.fix.cost if row.fix else (0, 0, 0, "")
    code = row.shown.code
    return bool(code), row.fix is None, cost, -len(row.hosts), code


def request_of(
    snapshot: Snapshot,
    *,
    flavor: str | None = None,
    image: str | None = None,
    server: str | None = None,
    volume_backed: bool | None = None,
    availability_zone: str = "",
    project: str = "",
    group: str | None = None,
) -> tuple[Request, tuple[str, ...]]:
    """Return the request to explain, and notes about it.

    :param flavor: name or ID; None if a server is named
    :param image: name or ID
    :param server: name or ID
    :param group: name or ID of the server group of a new server
    :raises NotFoundError: when no object or several objects match
    :raises RequestError: when nova-api would refuse the request
    """
    if server is not None:
        found = one("server", server, snapshot.servers)
        if not found.known:
            raise NotFoundError(
                f"nothing is known of server {found.id}: its cell is down"
            )
        # For a server on no host, Nova shows the zone that was requested.
        zone = "" if found.host else found.availability_zone
        if snapshot.zones_told:
            zone = found.bound_zone
        zone = moves.zone_asked(snapshot, zone)
        if availability_zone:
            zone = _zone(snapshot, availability_zone)
        request = replace(
            moves.request_of(snapshot, found),
            availability_zone=zone,
            project=project or found.project,
        )
        return request, tuple(_about(snapshot, found))
    wanted = one("flavor", flavor or "", snapshot.flavors)
    chosen = None
    if image is not None:
        if snapshot.images is None:
            raise NotFoundError(
                "the images could not be listed: leave --image out, and the image is "
                "taken to ask for nothing"
            )
        chosen = one("image", image, snapshot.images)
        for why in _unfit(chosen, wanted, local=not volume_backed):
            raise RequestError(f"nova-api refuses image {chosen.title}: {why}")
    if volume_backed is None and wanted.disk_gb:
        volume_backed = False
    request = request_for(
        wanted, chosen, volume_backed=volume_backed, aliases=snapshot.pci_aliases
    )
    return replace(
        in_cloud(request, snapshot),
        availability_zone=_zone(snapshot, availability_zone),
        project=project,
        group=None if group is None else _group(snapshot, group),
    ), ()


def _unfit(image: Image, flavor: Flavor, *, local: bool) -> Iterator[str]:
    """Yield why nova-api refuses to boot a new server of a flavor from an image.

    As ``nova.compute.api.API._validate_flavor_image``.

    :param local: whether the root disk is on the host
    """
    if flavor.memory_mb < image.min_ram_mb:
        yield f"min_ram is {image.min_ram_mb} MB, {flavor.name} has {flavor.memory_mb}"
    if local and 0 < flavor.disk_gb < image.min_disk_gb:
        yield f"min_disk is {image.min_disk_gb} GB, {flavor.name} has {flavor.disk_gb}"
    if local and image.properties.get("cinder_encryption_key_id"):
        yield "it was made of an encrypted volume, and boots from a volume only"


def _zone(snapshot: Snapshot, name: str) -> str:
    """Return the zone that Nova asks Placement for.

    :raises NotFoundError: when nova-api does not know the zone
    """
    asked = moves.zone_asked(snapshot, name)
    known = {host.availability_zone for host in snapshot.hosts} - {""}
    if name and not asked and name not in known:
        zones = ", ".join(sorted(known)) or "none"
        raise NotFoundError(
            f"there is no availability zone {name!r}; zones with hosts: {zones}"
        )
    return asked


def _group(snapshot: Snapshot, name: str) -> ServerGroup:
    if snapshot.server_groups is None:
        raise NotFoundError(f"{NO_GROUPS}: take one with an administrator's rights")
    return one("server group", name, snapshot.server_groups)


def one(kind: str, name: str, things: Iterable[_Named]) -> _Named:
    """Return the object with a name or an ID.

    :raises NotFoundError: when no object or several objects match
    """
    things = tuple(things)
    found = [thing for thing in things if thing.id == name] or [
        thing for thing in things if thing.name == name
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise NotFoundError(
            f"there is no {kind} {name!r}: see openstack {kind} list --all"
            f"{'-projects' if kind.startswith('server') else ''}"
        )
    ids = ", ".join(thing.id for thing in found[:5])
    raise NotFoundError(f"{len(found)} {kind}s are called {name!r}: name the ID: {ids}")


def _about(snapshot: Snapshot, server: Server) -> Iterator[str]:
    """Yield notes about an explained server: its fault, its host, unread facts."""
    if server.fault:
        yield f"{server.name} is {server.status}: {server.fault.strip()}"
    if server.host:
        yield (
            f"{server.name} is {server.status} on {server.host}: the table says where "
            f"it could move; {server.host} still counts it"
        )
    if server.host and server.availability_zone and not snapshot.zones_told:
        yield (
            f"whether Nova binds it to zone {server.availability_zone} is not known: "
            "the verdicts ignore zones"
        )
    if snapshot.server_groups is None:
        yield f"{NO_GROUPS}: nova-scheduler obeys the group of {server.name}, if any"
    if server.image and snapshot.image_of(server) is None:
        yield "its image cannot be read: the verdicts ignore image properties"


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
    :param offered: UUIDs of root providers for which Placement itself has candidates;
        None if Placement was not asked
    :raises NotFoundError: when the host does not exist
    """
    everything = views_of(snapshot)
    views = named(snapshot, everything, host)
    verdicts = judge_all(policy, request, views, settings)
    if offered is not None:
        verdicts = tuple(_compared(verdict, offered) for verdict in verdicts)
    fixer = Fixer(policy, snapshot, request, everything, settings)
    fixes = tuple(map(fixer.fix, verdicts))
    notes = [*assumed_cells(verdict.view.compute for verdict in verdicts)]
    notes += huge_pages_unknown(request, (v.view.compute for v in verdicts))
    notes += stays_put(request)
    notes += _not_owned(everything)
    if not settings.told:
        notes += _kept_for_others(request, verdicts)
    group = request.group
    if group is not None and group.policy.startswith(SOFT):
        notes.append(groups.preferred(snapshot, group))
    if fixer.stuck and not any(v.accepted for v in verdicts) and not any(fixes):
        hosts = some_of(fixer.stuck, _MOST_NAMED)
        notes.append(
            f"blocking servers for which other hosts lack room are on: {hosts}"
        )
    reasons = check_request(policy, request.facts) if settings.enforced else ()
    untold = unjudged(settings, request, verdicts)
    return Explanation(request, verdicts, reasons, fixes, tuple(notes), untold)


def named(
    snapshot: Snapshot, views: tuple[HostView, ...], host: str | None
) -> tuple[HostView, ...]:
    """Return all hosts, or the host with a name.

    :raises NotFoundError: when the host does not exist
    """
    if host is None:
        return views
    if found := tuple(v for v in views if host in {v.host, v.compute.node}):
        return found
    names = (view.host for view in views)
    raise NotFoundError(unknown_host(host, names, snapshot.unseen_hosts))


def _compared(verdict: HostVerdict, offered: frozenset[str]) -> HostVerdict:
    """Return a verdict that obeys Placement's own answer."""
    view = verdict.view
    if view.compute.provider in offered:
        return replace(verdict, placement=())
    # A disabled service, or a missing aggregate, is reason enough.
    outside = any(reason.code in _OUTSIDE for reason in verdict.before)
    disabled = view.tree and DISABLED in view.tree[0].traits
    if verdict.placement or outside or disabled:
        return verdict
    return replace(
        verdict, placement=(Reason(const.PLACEMENT_REFUSED, {"judged": True}),)
    )


def _kept_for_others(
    request: Request, verdicts: Iterable[HostVerdict]
) -> Iterator[str]:
    """Yield a note if a filter that is not enabled by default would refuse hosts."""
    names = [
        verdict.view.name
        for verdict in verdicts
        if verdict.accepted
        and request.project not in (projects_of(verdict.view) or {request.project})
    ]
    if names:
        yield (
            f"{TENANT_KEY} keeps {some_of(names, _MOST_NAMED)} for other projects "
            f"where {TENANT_FILTER} is enabled, by default it is not: see --nova-conf"
        )


def _not_owned(views: Iterable[HostView]) -> Iterator[str]:
    """Yield a note if only some hosts have the trait that Nova 34 requires."""
    trees = [view for view in views if view.tree]
    lacking = [view.name for view in trees if OWNED not in view.root.traits]
    if 0 < len(lacking) < len(trees):
        yield (
            f"no trait {OWNED} on {some_of(lacking, _MOST_NAMED)}: Nova 34 refuses "
            "such hosts when no nova-compute of the cloud is older: restart theirs then"
        )


def assumed_cells(hosts: Iterable[ComputeHost]) -> Iterator[str]:
    """Yield a note if the NUMA nodes of hosts are assumed."""
    count = sum(host.cells_source == ASSUMED for host in hosts)
    if count:
        yield (
            f"NUMA nodes of {number_of(count, 'host')} are {ASSUMED}: no API shows "
            "them; --from-nova-db reads them on a controller, --inventory from a file"
        )


def huge_pages_unknown(request: Request, hosts: Iterable[ComputeHost]) -> Iterator[str]:
    """Yield a note if a request asks for huge pages and those of hosts are unknown."""
    sizes = [cell.page_size_kb or 0 for cell in request.facts.cells]
    asked = any(s == const.PAGE_LARGE or s >= const.HUGE_KB for s in sizes)
    count = sum(bool(host.cells) and not host.pages_told for host in hosts)
    if asked and count:
        yield (
            f"huge pages of {number_of(count, 'host')} are not known and count as "
            "none: --from-nova-db reads them on a controller"
        )


def stays_put(request: Request) -> Iterator[str]:
    """Yield a note if Nova will not migrate the server live."""
    if why := obstacle(request.keys):
        yield f"Nova will not migrate it live: {why}"
