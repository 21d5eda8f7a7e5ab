# SPDX-License-Identifier: Apache-2.0
"""Read a cloud, or some of its hosts: few requests, most of them several at a time.

Lists are read page by page.  What there is no list of takes requests of its
own: four for each resource provider, one for each server that may be pinned, and
for each that was made of an image and has a volume.
"""

from __future__ import annotations

import datetime as dt
import itertools
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from nova_perfvm import constants as const
from nova_perfvm.cloud import answers, at_once, down_cells, rights
from nova_perfvm.cloud.errors import CloudError, NotThereError, openstack_errors
from nova_perfvm.facts.migration_states import UNFINISHED
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.placement.schemes import child_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from nova_perfvm.cloud.api import API
    from nova_perfvm.facts.snapshot import (
        ComputeHost,
        Flavor,
        Image,
        Migration,
        Provider,
        Server,
    )

    # Told what is being read, how much of it is done, and of how much.
    Progress = Callable[[str, int, int], None]
    Hypervisors = Sequence[Mapping[str, Any]]

_Found = TypeVar("_Found")

AT_ONCE: Final = 8

# Extra specs, or images' properties, that give a server a NUMA topology.
_TOPOLOGY_KEYS: Final = (
    const.CPU_POLICY,
    const.MEM_PAGE_SIZE,
    "hw:cpu_realtime",
    "hw:pmem",
    "hw:mem_encryption",
)
# Nova refuses an image that wants pinned CPUs with a flavor that says this.
_SHARED: Final = "shared"


def silent(_what: str, _done: int, _total: int) -> None:
    """Tell nobody."""


def read_snapshot(
    api: API,
    *,
    hosts: Hypervisors | None = None,
    before: Snapshot | None = None,
    policy_digest: str | None = None,
    progress: Progress = silent,
    partial: bool = False,
) -> Snapshot:
    """Read a whole cloud, or some hosts with the providers and servers that are theirs.

    What changes meanwhile is looked at again where it would seem wrong: a
    consumer of allocations that no list has.  Of some hosts the servers are read
    before the allocations, so that none seems to hold nothing because it came later.

    :param hosts: their hypervisors; None for the whole cloud.  Flavors, images and
        migrations are not read then
    :param before: what the cloud showed before: flavors and images are taken from it,
        and migrations are read
    :param progress: called from this thread only
    :param partial: leave out what the credentials may not read, and say so among the
        gaps, rather than fail
    :raises CloudError: when a request fails
    """
    with openstack_errors():
        reader = _Reader(api, hosts, before, progress, partial=partial)
        return reader.read(policy_digest)


class _Reader:
    """Reads a cloud, part by part."""

    def __init__(
        self,
        api: API,
        some: Hypervisors | None,
        before: Snapshot | None,
        progress: Progress,
        *,
        partial: bool,
    ) -> None:
        self._api = api
        self._some = some
        self._before = before
        self._progress = progress
        self._partial = partial
        self._gaps: list[str] = []
        # Hosts of cells that are down; of which, Nova does not say.
        self._lost: list[str] = []

    def read(self, policy_digest: str | None) -> Snapshot:
        """Return what the cloud shows."""
        whole = self._some is None
        # Allocations first: a server that comes later is then no riddle.
        counted = self._allowed("providers", self._providers) if whole else None
        services = self._allowed("services", self._services) or {}
        listed = self._allowed("hypervisors", self._hypervisors)
        hypervisors = listed or []
        aggregates = self._allowed("aggregates", lambda: answers.aggregates(self._api))
        names = self._allowed("names", lambda: answers.names(self._api))
        flavors = self._allowed("flavors", self._flavors)
        images = self._images()
        shown = self._allowed("servers", self._servers)
        if not whole:
            counted = self._allowed("providers", self._providers)
        providers, servers = counted or [], shown or []
        migrations = self._allowed("migrations", self._migrations) or ()
        rebuilt: list[ComputeHost] = []
        if listed is None:
            rebuilt = rights.hosts_of(services, providers, servers)
        elif whole and self._lost:
            rebuilt = self._rebuilt(services, hypervisors, providers, servers)
        roots = {found["id"] for found in hypervisors}
        roots |= {host.provider for host in rebuilt}
        if shown is not None:
            again = self._allowed(
                "providers",
                lambda: self._look_again(providers, shown, migrations, roots),
            )
            providers, servers = again or (providers, shown)
            servers = self._topologies(servers, providers, images)
            self._gaps += rights.hidden(servers) if self._partial else ()
        hosts = rebuilt + [
            answers.compute_host(
                found, services.get(found["service"]["host"]), providers, servers
            )
            for found in hypervisors
        ]
        if counted is None:
            hosts = [rights.without_cpu_sets(host, servers) for host in hosts]
        now = dt.datetime.now(dt.UTC)
        return Snapshot(
            taken_at=now.isoformat(timespec="seconds"),
            hosts=tuple(sorted(hosts, key=lambda host: (host.host, host.node))),
            providers=tuple(sorted(providers, key=lambda p: (p.name, p.uuid))),
            aggregates=aggregates or (),
            servers=tuple(servers),
            flavors=flavors or (),
            images=images,
            migrations=migrations,
            names=names or frozenset(),
            gaps=tuple(self._gaps),
            unseen_hosts=tuple(self._lost),
            policy_digest=policy_digest,
            project=self._api.project(),
        )

    def _allowed(self, what: str, read: Callable[[], _Found]) -> _Found | None:
        """Return what is read; None, and a gap, if that is not allowed."""
        try:
            return read()
        except CloudError as exc:
            if not self._partial or exc.status != rights.FORBIDDEN:
                raise
            self._gaps.append(rights.gap(what, exc))
            return None

    def _list(self, path: str, key: str, what: str | None = None) -> list[Any]:
        found = []
        for member in self._api.nova_list(path, key):
            found.append(member)
            if len(found) % 100 == 0:
                self._progress(what or key, len(found), 0)
        self._progress(what or key, len(found), len(found))
        return found

    def _providers(self) -> list[Provider]:
        def read(entry: Mapping[str, Any]) -> Provider | None:
            try:
                return answers.provider(self._api, entry)
            except NotThereError:
                return None

        found = self._at_once("resource providers", read, self._entries())
        return [provider for provider in found if provider is not None]

    def _entries(self) -> list[dict[str, Any]]:
        """Return which resource providers there are, or some hosts have."""
        if self._some is None:
            return answers.providers(self._api)
        return [
            entry
            for found in self._at_once("hosts' providers", self._tree, self._some)
            for entry in found
        ]

    def _tree(self, hypervisor: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return a host's tree, and what has a child's name outside of it."""
        found = answers.providers(self._api, in_tree=hypervisor["id"])
        roots = [p["name"] for p in found if p["uuid"] == hypervisor["id"]]
        known = {p["name"] for p in found}
        for name in child_names(roots[0]) if roots else ():
            if name in known:
                continue
            strangers = answers.providers(self._api, name=name)
            if not strangers:
                # No more children than this one's letter, as far as is known.
                break
            found += strangers
        return found

    def _host_names(self) -> list[str]:
        """Return the names of the hosts to read; none for the whole cloud."""
        # A service may have several nodes.
        names = (found["service"]["host"] for found in self._some or ())
        return list(dict.fromkeys(names))

    def _services(self) -> dict[str, dict[str, Any]]:
        """Return the services by host; note the hosts of cells that are down."""
        names = self._host_names()
        only = names[0] if len(names) == 1 else None
        found = answers.compute_services(self._api, only)
        self._lost = sorted(answers.in_lost_cells(found))
        return {host: s for host, s in found.items() if host not in self._lost}

    def _hypervisors(self) -> list[Any]:
        """Return the hypervisors; while a cell is down Nova lists not all of them."""
        if self._some is not None:
            return [f for f in self._some if f["service"]["host"] not in self._lost]
        if not self._lost:
            return self._list("/os-hypervisors/detail", "hypervisors")
        return [
            found
            for found in down_cells.hypervisors(self._api)
            # Its cell is back, and what was asked before lacks all that it has.
            if found["service"]["host"] not in self._lost
        ]

    def _rebuilt(
        self,
        services: Mapping[str, Mapping[str, Any]],
        hypervisors: Iterable[Mapping[str, Any]],
        providers: Sequence[Provider],
        servers: Iterable[Server],
    ) -> list[ComputeHost]:
        """Return the hosts that are up, and without a hypervisor as a cell is down."""
        listed = {found["service"]["host"] for found in hypervisors}
        taken = {found["id"] for found in hypervisors}
        missing = services.keys() - listed
        found = down_cells.matches(
            missing, [p for p in providers if p.uuid not in taken], servers
        )
        rebuilt = [
            answers.host_of_provider(root, services[name]) for name, root in found
        ]
        names = [host.host for host in rebuilt]
        unmatched = sorted(missing - set(names))
        self._gaps += down_cells.gaps(self._lost, names, unmatched)
        return rebuilt

    def _flavors(self) -> tuple[Flavor, ...]:
        if self._before is not None:
            return self._before.flavors
        return answers.flavors(self._api) if self._some is None else ()

    def _images(self) -> tuple[Image, ...] | None:
        """Return the images; without Glance all else can be judged."""
        if self._some is not None:
            return self._before.images if self._before else None
        try:
            return answers.images(self._api)
        except CloudError as exc:
            self._gaps.append(f"images: {exc}")
            return None

    def _servers(self) -> list[Server]:
        if self._some is None:
            found = self._list("/servers/detail?all_tenants=1", "servers")
        else:
            listed = self._at_once("hosts' servers", self._on_host, self._host_names())
            found = [server for servers in listed for server in servers]
        asked = [server for server in found if answers.may_have_volume_root(server)]
        roots = set(self._at_once("root disks", self._volume_root, asked))
        servers = [
            self._with_fault(answers.server(server, volume_root=server["id"] in roots))
            for server in found
        ]
        stubs = self._lost and self._some is None
        return servers + (down_cells.servers(self._api) if stubs else [])

    def _on_host(self, host: str) -> list[dict[str, Any]]:
        return list(answers.server_list(self._api, host))

    def _volume_root(self, found: Mapping[str, Any]) -> str | None:
        """Return the ID of a server whose root disk is a volume."""
        try:
            return found["id"] if answers.has_volume_root(self._api, found) else None
        except CloudError as exc:
            if not self._partial or exc.status != rights.FORBIDDEN:
                raise
            return None

    def _with_fault(self, server: Server) -> Server:
        """Return a server with its fault.

        Up to 2025.2, Nova's list has those of one cell only.
        """
        if server.status != "ERROR" or server.fault:
            return server
        try:
            path = f"/servers/{quote(server.id)}"
            found = self._api.nova("GET", path, key="server")
            return answers.server(found, volume_root=server.volume_root)
        except NotThereError:
            return server

    def _migrations(self) -> tuple[Migration, ...]:
        if self._some is not None and self._before is None:
            return ()
        queries = [{"status": status} for status in UNFINISHED]
        queries.append({"status": "done", "migration_type": "evacuation"})
        listed = [answers.migrations(self._api, **query) for query in queries]
        return tuple(itertools.chain.from_iterable(listed))

    def _look_again(
        self,
        providers: list[Provider],
        servers: list[Server],
        migrations: Sequence[Migration],
        roots: Collection[str],
    ) -> tuple[list[Provider], list[Server]]:
        """Explain the consumers of which no list has anything.

        Servers that were deleted meanwhile have no allocation any more; soft
        deleted ones are in no list.

        :param roots: the top providers of hosts that were seen
        """
        known = {server.id for server in servers} | {m.id for m in migrations}
        consumers = {
            consumer
            for provider in providers
            # Nova waits long for a cell that is down, and then knows nothing.
            if not self._lost or provider.root in roots
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
        """Ask for the NUMA topology of the servers that may have one."""
        held = [found for p in providers for found in p.allocations.items()]
        holders = {consumer for consumer, _ in held}
        owners = {consumer for consumer, resources in held if "PCPU" in resources}
        # Where Placement counts PCPU, it knows who owns CPUs.
        counting = {p.name for p in providers if "PCPU" in p.inventories}
        properties = {image.id: image.properties for image in images or ()}
        asked = [
            server
            for server in servers
            if server.host is not None
            and (
                server.id in owners
                or _wants_topology(server, properties.get(server.image or ""))
                # The image of a volume could say so, and no list has it.
                or (
                    server.image not in properties
                    and (server.node not in counting or server.id not in holders)
                    and server.extra_specs.get(const.CPU_POLICY) != _SHARED
                )
            )
        ]

        def read(server: Server) -> Server:
            try:
                found = answers.with_topology(self._api, server)
            except CloudError as exc:
                if not self._partial or exc.status != rights.FORBIDDEN:
                    raise
                return server
            # What is but half told is not taken for the whole.
            told = not self._partial or rights.has_host_nodes(found)
            return found if told else server

        found = self._at_once("topologies", read, asked)
        by_id = {server.id: server for server in found}
        return [by_id.get(server.id, server) for server in servers]

    def _at_once(
        self, what: str, read: Callable[[Any], Any], items: Sequence[Any]
    ) -> list[Any]:
        found = []
        for _, future in at_once.each(read, items, AT_ONCE):
            found.append(future.result())
            self._progress(what, len(found), len(items))
        return found


def _wants_topology(server: Server, properties: Mapping[str, str] | None) -> bool:
    named = {
        key.replace("_", ":", 1): value for key, value in (properties or {}).items()
    }
    named.update(server.extra_specs)
    if named.get(const.CPU_POLICY) == _SHARED:
        # As general flavors say it: by itself it makes no topology.
        del named[const.CPU_POLICY]
    return any(key in _TOPOLOGY_KEYS or key.startswith("hw:numa_") for key in named)
