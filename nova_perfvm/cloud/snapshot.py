# SPDX-License-Identifier: Apache-2.0
"""Read a cloud, or some of its hosts: few requests, several at a time.

Lists are read page by page.  Details that no list shows take requests of their own:
four for each resource provider, one for each server that may be pinned, and one for
each server that has an image and a volume.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from nova_perfvm import constants as const
from nova_perfvm.cloud import answers, at_once, volumes
from nova_perfvm.cloud.errors import CloudError, NotThereError, openstack_errors
from nova_perfvm.facts.children import child_name, host_of_child
from nova_perfvm.facts.migration_states import REVERTED, UNFINISHED
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.printable import number_of, some_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from nova_perfvm.cloud.answers import Hypervisors
    from nova_perfvm.cloud.api import API
    from nova_perfvm.facts.snapshot import (
        Flavor,
        Image,
        Migration,
        Provider,
        RootVolume,
        Server,
    )

    # Called with the kind of objects being read, the number read, and the number of
    # all.
    Progress = Callable[[str, int, int], None]

AT_ONCE: Final = 8
# Threads for a read of some hosts only: several such reads run at once, and the SDK's
# session keeps ten connections.
_FEW: Final = 2
# Hypervisors in a page, while a cell is down.
_PAGE: Final = 64
# The most hosts in cells that are down that a message names.
_NAMED: Final = 3
# A root provider without a hypervisor that changed within these seconds may belong to a
# host that is being added or removed.
_RECENT_S: Final = 3600


def read_snapshot(
    api: API,
    *,
    hosts: Hypervisors | None = None,
    before: Snapshot | None = None,
    policy_digest: str | None = None,
    progress: Progress = lambda _what, _done, _total: None,
) -> Snapshot:
    """Read a whole cloud, or some hosts with their providers and servers.

    Consumers of allocations that no list shows are looked up again, as the cloud may
    change while it is read.  For some hosts the servers are read before the
    allocations: otherwise a server that comes meanwhile would seem to hold nothing.

    :param hosts: the hypervisors of the hosts; None for the whole cloud.  For some
        hosts, flavors and images are not read, and migrations only with `before`
    :param before: an earlier snapshot of the cloud, from which flavors, images and
        server groups are taken
    :param progress: called from this thread only
    :raises CloudError: when a request fails
    """
    with openstack_errors():
        return _Reader(api, hosts, before, progress).read(policy_digest)


def _bare(hypervisor: Mapping[str, Any]) -> bool:
    """Return whether a hypervisor is a bare-metal node of Ironic."""
    return hypervisor.get("hypervisor_type") == const.IRONIC


class _Reader:
    """Reads a cloud, part by part."""

    def __init__(
        self,
        api: API,
        some: Hypervisors | None,
        before: Snapshot | None,
        progress: Progress,
    ) -> None:
        self._api = api
        self._some = some
        self._before = before
        self._progress = progress
        self._gaps: list[str] = []
        # (ID of a server, device name of its root disk).
        self._root_disks: set[tuple[str, str]] = set()
        self._zones_told = before.zones_told if before else False
        # Hosts in cells that are down, or that Nova lists after such a cell.
        self._unseen: list[str] = []

    def read(self, policy_digest: str | None) -> Snapshot:
        """Read all parts; return the snapshot."""
        whole = self._some is None
        # Allocations first: a server that comes later cannot appear as an unknown
        # consumer.
        providers = self._providers() if whole else []
        services = self._services()
        hypervisors = self._hypervisors(services)
        aggregates = answers.aggregates(self._api)
        names = answers.names(self._api)
        flavors = self._flavors()
        images = self._unless_refused("images", answers.images)
        servers = self._servers()
        volume_types, root_volumes = self._volumes()
        if not whole:
            providers = self._providers()
        migrations = self._migrations(servers)
        bare_metal, unlisted, tops = 0, set[str](), set[str]()
        if whole:
            listed = {found["service"]["host"] for found in hypervisors}
            unlisted = services.keys() - {*listed, *self._unseen}
            nodes = {h["id"]: h["service"]["host"] for h in filter(_bare, hypervisors)}
            bare_metal = len(nodes)
            hypervisors = [found for found in hypervisors if found["id"] not in nodes]
            providers = [p for p in providers if (p.root or p.uuid) not in nodes]
            servers = [one for one in servers if one.host not in nodes.values()]
        roots = {found["id"] for found in hypervisors}
        if whole and not self._unseen:
            tops = {p.uuid for p in providers if p.parent is None} - roots
        providers, servers = self._look_again(providers, servers, migrations, roots)
        servers = self._topologies(servers, providers, images)
        hosts = [
            answers.compute_host(
                found, services.get(found["service"]["host"]), providers, servers
            )
            for found in hypervisors
        ]
        now = dt.datetime.now(dt.UTC)
        return Snapshot(
            taken_at=now.isoformat(timespec="seconds"),
            hosts=tuple(sorted(hosts, key=lambda host: (host.host, host.node))),
            providers=tuple(sorted(providers, key=lambda p: (p.name, p.uuid))),
            aggregates=aggregates,
            servers=tuple(servers),
            flavors=flavors,
            images=images,
            volume_types=volume_types,
            root_volumes=root_volumes,
            server_groups=self._unless_refused("server_groups", answers.server_groups),
            zones_told=self._zones_told,
            migrations=migrations,
            names=names,
            gaps=tuple(self._gaps),
            unseen_hosts=tuple(self._unseen),
            unlisted=tuple(sorted(unlisted)),
            recent=tuple(filter(self._is_recent, sorted(tops))),
            policy_digest=policy_digest,
            project=self._api.project(),
            microversion=self._microversion(),
            bare_metal=bare_metal,
        )

    def _list(self, path: str, key: str) -> list[Any]:
        found = []
        for member in self._api.nova_list(path, key):
            found.append(member)
            if len(found) % 100 == 0:
                self._progress(key, len(found), 0)
        self._progress(key, len(found), len(found))
        return found

    def _providers(self) -> list[Provider]:
        def read(entry: Mapping[str, Any]) -> Provider | None:
            try:
                return answers.provider(self._api, entry)
            except NotThereError:
                return None

        found = self._at_once("resource providers", read, self._entries())
        return [provider for provider in found if provider is not None]

    def _is_recent(self, provider: str) -> bool:
        """Return whether a provider changed within the last _RECENT_S seconds."""
        try:
            return self._api.provider_since(provider)[1] < _RECENT_S
        except NotThereError:
            return False

    def _entries(self) -> list[dict[str, Any]]:
        """Return Placement's entries of all providers, or of those of some hosts."""
        if self._some is None:
            return answers.providers(self._api)
        shapeless = any(answers.shape(found) is None for found in self._some)
        every = answers.providers(self._api) if shapeless else []
        read = functools.partial(self._tree, every)
        return [
            entry
            for found in self._at_once("hosts' providers", read, self._some)
            for entry in found
        ]

    def _tree(
        self, every: list[dict[str, Any]], hypervisor: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the providers of a host's tree, and others with a child's name.

        :param every: all providers, for hosts that do not report their NUMA nodes
        """
        found = answers.providers(self._api, in_tree=hypervisor["id"])
        root = next((p["name"] for p in found if p["uuid"] == hypervisor["id"]), None)
        if root is None:
            return found
        known = {p["name"] for p in found}
        shape = answers.shape(hypervisor)
        if shape is None:
            named = (p for p in every if host_of_child(p["name"]) == root)
            return found + [p for p in named if p["name"] not in known]
        nodes = (f"{const.CELL_SUFFIX}{node}" for node in itertools.count())
        # Letters have no gaps.  Children under cells have the numbers of NUMA nodes,
        # and a NUMA node without dedicated CPUs has no child.
        for suffixes, certain in ((const.CHILD_LETTERS, 0), (nodes, shape.cells)):
            for number, suffix in enumerate(suffixes):
                name = child_name(root, suffix)
                if name in known:
                    continue
                strangers = answers.providers(self._api, name=name)
                if not strangers and number >= certain:
                    break
                found += strangers
        return found

    def _host_names(self) -> list[str]:
        """Return the names of the hosts to read; empty for the whole cloud."""
        # One compute service may have several nodes.
        names = (found["service"]["host"] for found in self._some or ())
        return list(dict.fromkeys(names))

    def _services(self) -> dict[str, dict[str, Any]]:
        names = self._host_names()
        return answers.compute_services(self._api, names[0] if len(names) == 1 else "")

    def _hypervisors(self, services: Mapping[str, Any]) -> list[Any]:
        """Return the hypervisors of reachable cells; note all other hosts as unseen."""
        lost = answers.in_lost_cells(services)
        if self._some is not None:
            listed = list(self._some)
        elif lost:
            listed = self._before_lost_cells()
        else:
            return self._list("/os-hypervisors/detail", "hypervisors")
        # A cell may have come back meanwhile, but earlier answers lack its objects.
        found = [one for one in listed if one["service"]["host"] not in lost]
        if lost:
            seen = {one["service"]["host"] for one in found}
            asked = set(self._host_names()) or services.keys()
            self._unseen = sorted(asked - seen)
            noun = "host" if len(self._unseen) == 1 else "hosts"
            self._gaps.append(
                f"cells: Nova cannot reach the cell of {noun} "
                f"{some_of(self._unseen, _NAMED)}, or lists no hypervisor after such "
                "a cell: the state of these hosts, the servers there, and the owners "
                "of allocations there are unknown"
            )
        return found

    def _before_lost_cells(self) -> list[Any]:
        """Return the hypervisors of the cells before the first cell that is down.

        To list hypervisors Nova reads one cell after another, and fails at a cell that
        is down.  A page that ends before that cell succeeds; therefore the page size is
        halved after each failure.
        """
        found: list[Any] = []
        limit, marker = _PAGE, ""
        while limit:
            path = f"/os-hypervisors/detail?limit={limit}{marker}"
            try:
                page = self._api.nova("GET", path, key="hypervisors")
            except CloudError as exc:
                if 0 < exc.status < 500:
                    raise
                limit //= 2
                continue
            if not page:
                break
            found += page
            marker = f"&marker={page[-1]['id']}"
        return found

    def _microversion(self) -> str:
        if self._before is not None:
            return self._before.microversion
        return answers.microversion(self._api) if self._some is None else ""

    def _flavors(self) -> tuple[Flavor, ...]:
        """Return the earlier snapshot's flavors, or Nova's if all hosts are read."""
        if self._before is not None:
            return self._before.flavors
        return answers.flavors(self._api) if self._some is None else ()

    def _unless_refused(self, part: str, read: Callable[[API], Any]) -> Any:
        """Return a part of the snapshot; None, with a gap noted, if it is refused."""
        if self._some is not None:
            return getattr(self._before, part, None)
        try:
            return read(self._api)
        except CloudError as exc:
            self._gaps.append(f"{part.replace('_', ' ')}: {exc}")
            return None

    def _volumes(self) -> tuple[tuple[str, ...] | None, tuple[RootVolume, ...]]:
        """Return volume types and root volumes; note a gap if Cinder fails."""
        try:
            if self._some is None and self._api.has_cinder():
                types = volumes.volume_types(self._api)
                return types, volumes.root_volumes(self._api, self._root_disks)
        except CloudError as exc:
            self._gaps.append(f"volumes: {exc}")
        return None, ()

    def _servers(self) -> list[Server]:
        if self._some is None:
            found = self._list("/servers/detail?all_tenants=1", "servers")
        else:
            listed = self._at_once("hosts' servers", self._on_host, self._host_names())
            found = [server for servers in listed for server in servers]
        self._zones_told |= any(answers.BOUND_ZONE in one for one in found)
        self._root_disks = {
            (one["id"], name) for one in found if (name := answers.root_device(one))
        }
        asked = [server for server in found if answers.may_have_volume_root(server)]
        roots = set(self._at_once("root disks", self._volume_root, asked))
        servers = [
            self._with_fault(answers.server(server, volume_root=server["id"] in roots))
            for server in found
        ]
        if self._some is None and self._unseen:
            # Nova omits servers of which it knows only the ID from pages with a limit.
            found = self._api.nova("GET", "/servers?all_tenants=1", key="servers")
            unknown = {one["id"] for one in found if "name" not in one}
            unknown |= {one.id for one in servers if one.host in self._unseen}
            servers = [one for one in servers if one.id not in unknown]
            servers += map(answers.unknown_server, sorted(unknown))
        return servers

    def _on_host(self, host: str) -> list[dict[str, Any]]:
        return list(answers.server_list(self._api, host))

    def _volume_root(self, found: Mapping[str, Any]) -> str | None:
        """Return the ID of a server whose root disk is a volume."""
        return found["id"] if answers.has_volume_root(self._api, found) else None

    def _with_fault(self, server: Server) -> Server:
        """Return a server with its fault.

        Up to 2025.2, Nova's list shows the faults of servers in one cell only.
        """
        if server.status != "ERROR" or server.fault:
            return server
        try:
            path = f"/servers/{quote(server.id)}"
            found = self._api.nova("GET", path, key="server")
            return answers.server(found, volume_root=server.volume_root)
        except NotThereError:
            return server

    def _migrations(self, servers: Iterable[Server]) -> tuple[Migration, ...]:
        if self._some is not None and self._before is None:
            return ()
        queries = [{"status": status} for status in UNFINISHED]
        queries.append({"status": "done", "migration_type": "evacuation"})
        listed = [answers.migrations(self._api, **query) for query in queries]
        found = list(itertools.chain.from_iterable(listed))
        known = {migration.server for migration in found}
        # The records of all reverts ever are many: ask for those of servers on the way.
        on_the_way = [s for s in servers if s.resized and s.id not in known]
        found += filter(None, self._at_once("reverts", self._reverted, on_the_way))
        return tuple(found)

    def _reverted(self, server: Server) -> Migration | None:
        """Return the last move of a server if that move has been reverted."""
        moves = answers.migrations(self._api, instance_uuid=server.id)
        return moves[0] if moves and moves[0].status == REVERTED else None

    def _look_again(
        self,
        providers: list[Provider],
        servers: list[Server],
        migrations: Sequence[Migration],
        roots: Collection[str],
    ) -> tuple[list[Provider], list[Server]]:
        """Look up the consumers of allocations that no list names.

        If a server was deleted meanwhile, its allocation is removed from the providers.
        A soft-deleted server is in no list: the look-up adds the server.

        :param roots: the root providers of the hosts that were read
        """
        known = {server.id for server in servers} | {m.id for m in migrations}
        consumers = {
            consumer
            for provider in providers
            # A look-up of a server in a cell that is down makes Nova wait, and tells
            # nothing.
            if not self._unseen or provider.root in roots
            for consumer in provider.allocations
        } - known
        gone: set[str] = set()
        servers = list(servers)
        for consumer in sorted(consumers):
            try:
                servers.append(answers.one_server(self._api, consumer))
            except NotThereError:
                path = f"/allocations/{quote(consumer)}"
                if not self._api.placement("GET", path, key="allocations"):
                    gone.add(consumer)
        return [provider.without(gone) for provider in providers], servers

    def _topologies(
        self,
        servers: list[Server],
        providers: Iterable[Provider],
        images: tuple[Image, ...] | None,
    ) -> list[Server]:
        """Ask Nova for the NUMA topology of the servers that may have one."""
        held = [found for p in providers for found in p.allocations.items()]
        holders = {consumer for consumer, _ in held}
        owners = {consumer for consumer, resources in held if "PCPU" in resources}
        # On hosts with PCPU inventory, allocations tell which servers own CPUs.
        counting = {p.name for p in providers if "PCPU" in p.inventories}
        properties = {image.id: image.properties for image in images or ()}
        asked = [
            server
            for server in servers
            if server.host is not None
            and (
                server.id in owners
                or answers.wants_topology(server, properties.get(server.image or ""))
                # The image in a root volume may ask for pinned CPUs, and no list shows
                # that image.
                or (
                    server.image not in properties
                    and (server.node not in counting or server.id not in holders)
                    and server.extra_specs.get(const.CPU_POLICY) != answers.SHARED
                )
            )
        ]

        read = functools.partial(answers.with_topology, self._api)
        found = self._at_once("topologies", read, asked)
        by_id = {server.id: server for server in found}
        if hidden := sum(server.known and server.pins_hidden for server in found):
            self._gaps.append(
                f"pins: unknown for {number_of(hidden, 'server')}: deleted meanwhile, "
                "or of other projects, whose pins Nova shows only to administrators"
            )
        return [by_id.get(server.id, server) for server in servers]

    def _at_once(
        self, what: str, read: Callable[[Any], Any], items: Sequence[Any]
    ) -> list[Any]:
        found = []
        workers = AT_ONCE if self._some is None else _FEW
        for _, future in at_once.each(read, items, workers):
            found.append(future.result())
            self._progress(what, len(found), len(items))
        return found
