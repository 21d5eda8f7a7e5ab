# SPDX-License-Identifier: Apache-2.0
"""A whole cloud at one time, as an audit, an explanation or a plan needs it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Final

from nova_perfvm.documents.keys import Expected, Time, matching
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.facts import PagePool
from nova_perfvm.facts.children import host_of_child
from nova_perfvm.facts.migration_states import UNFINISHED
from nova_perfvm.facts.snapshot.groups import ServerGroup
from nova_perfvm.facts.snapshot.pci import PCIPool, PCIRequest
from nova_perfvm.facts.snapshot.resources import (
    Aggregate,
    Flavor,
    Image,
    Migration,
    Provider,
    Server,
)
from nova_perfvm.policy import HostShape

# Of a compute service that was enabled until an enroll took it out of service.
DISABLED_REASON: Final = "nova-perfvm: enroll in progress, was enabled"

# Where the NUMA nodes of a host are known from; no API shows them.
NOVA_DATABASE: Final = "nova database"
INVENTORY_FILE: Final = "inventory file"
COLLECTED: Final = "collected on the host"
ASSUMED: Final = "assumed symmetric"
UNKNOWN: Final = "unknown"
CELL_SOURCES: Final = (NOVA_DATABASE, INVENTORY_FILE, COLLECTED, ASSUMED, UNKNOWN)
CellsSource = Annotated[
    str, Expected(f"one of {', '.join(CELL_SOURCES)}", CELL_SOURCES.__contains__)
]

Microversion = Annotated[
    str, matching(r"(\d{1,9}\.\d{1,9})?", "a microversion such as 2.96, or nothing")
]


@dataclass(frozen=True)
class HostCell:
    """One NUMA node of a compute host.

    :ivar cpuset: CPUs that unpinned VMs share
    :ivar pcpuset: CPUs that pinned VMs may own
    :ivar siblings: sets of threads that share a core; empty for no SMT
    :ivar pinned_cpus: those owned now, as the compute reports them; None: what
        its servers own
    :ivar memory_usage_mb: as the compute reports it; None: what its servers have
    :ivar cpu_usage: vCPUs that share its CPUs, of VMs with a NUMA topology, as the
        compute reports it; None: what its servers have
    :ivar mempages: pages by size; no API shows them
    :ivar physnets: physical networks that nova-compute has affinity to it for; None:
        nobody tells
    :ivar socket: that it is on; None: nobody tells
    """

    id: int
    cpuset: frozenset[int]
    pcpuset: frozenset[int]
    memory_mb: int
    siblings: tuple[frozenset[int], ...] = ()
    pinned_cpus: frozenset[int] | None = None
    memory_usage_mb: int | None = None
    cpu_usage: int | None = None
    mempages: tuple[PagePool, ...] = ()
    physnets: frozenset[str] | None = None
    socket: int | None = None


@dataclass(frozen=True)
class ComputeHost:
    """One compute node and its service.

    :ivar host: the service's name
    :ivar node: the hypervisor's
    :ivar provider: UUID of its resource provider, and of the hypervisor
    :ivar up: whether the service reports
    :ivar enabled: whether the scheduler may use it
    :ivar vcpus: as Nova counts them, pinned ones left out
    :ivar shape: NUMA nodes, cores and threads; None where it shows none
    :ivar cells: its NUMA nodes; empty if unknown
    :ivar cells_source: one of :data:`CELL_SOURCES`
    :ivar vcpus_used: as the compute reports it; None: what its servers have
    :ivar num_instances: as the compute reports it; None: its servers
    :ivar pci_pools: its free PCI devices; None where nobody looked
    :ivar unreadable: why what it reports cannot be read in Nova's database, if so
    :ivar service_version: of its nova-compute, by Nova's database
    :ivar reported: figures in older files, of which none is read any more
    :ivar capabilities: what nova-scheduler's filters look at, called as it has it
        (HostState); lists and the like as JSON; the API shows some of it
    """

    host: str
    node: str
    provider: str
    service: str
    up: bool = True
    enabled: bool = True
    forced_down: bool = False
    disabled_reason: str | None = None
    availability_zone: str = ""
    vcpus: int = 0
    memory_mb: int = 0
    shape: HostShape | None = None
    cells: tuple[HostCell, ...] = ()
    cells_source: CellsSource = UNKNOWN
    vcpus_used: int | None = None
    num_instances: int | None = None
    pci_pools: tuple[PCIPool, ...] | None = None
    unreadable: str = ""
    service_version: int | None = None
    reported: Mapping[str, float] = field(default_factory=dict)
    capabilities: Mapping[str, str] = field(default_factory=dict)

    @property
    def interrupted(self) -> bool:
        """Return whether an interrupted enroll left the host's service disabled."""
        return not self.enabled and self.disabled_reason == DISABLED_REASON

    @property
    def cells_told(self) -> bool:
        """Return whether the host's NUMA nodes are known, not assumed."""
        return self.cells_source not in {ASSUMED, UNKNOWN}

    @property
    def cpus(self) -> frozenset[int]:
        """Return the shared and dedicated CPUs of the host's NUMA nodes."""
        none: frozenset[int] = frozenset()
        return none.union(*(cell.cpuset | cell.pcpuset for cell in self.cells))

    @property
    def cores(self) -> tuple[int, ...]:
        """The number of cores of each NUMA node of the host."""
        return tuple(len(c.siblings) or len(c.cpuset | c.pcpuset) for c in self.cells)

    @property
    def threads(self) -> int:
        """The most threads of a core of the host."""
        return max((len(s) for c in self.cells for s in c.siblings), default=1)

    @property
    def all_memory_mb(self) -> int:
        """The memory of all NUMA nodes, or what Nova's API says of the hypervisor."""
        return sum(cell.memory_mb for cell in self.cells) or self.memory_mb

    def divided(
        self, dedicated: frozenset[int], shared: frozenset[int] = frozenset()
    ) -> "ComputeHost":
        """Return the host with its CPUs restricted to these cpu sets."""
        usable = dedicated | shared
        cells = (
            replace(
                cell,
                cpuset=cell.cpuset & shared,
                pcpuset=cell.pcpuset & dedicated,
                siblings=tuple(c & usable for c in cell.siblings if c & usable),
            )
            for cell in self.cells
        )
        return replace(self, cells=tuple(cells))

    @property
    def division_assumed(self) -> bool:
        """Return whether the NUMA nodes of the dedicated CPUs are a guess.

        That is the case where NUMA nodes are assumed, and neither kind of CPUs fills
        whole nodes: each node was then given some CPUs of both kinds.
        """
        return (
            self.cells_source == ASSUMED
            and len(self.cells) > 1
            and any(
                cell.cpuset and cell.pcpuset and cell.cpuset.isdisjoint(cell.pcpuset)
                for cell in self.cells
            )
        )


@dataclass(frozen=True)
class RootVolume:
    """A volume of Cinder that a server boots from.

    :ivar server: the server's ID
    :ivar volume_type: name; empty for none
    """

    id: str
    server: str
    volume_type: str


@dataclass(frozen=True)
class Snapshot:
    """What a cloud shows.

    :ivar taken_at: when the last request was answered, ISO 8601, UTC
    :ivar policy_digest: of the policy that was in use, if one was named
    :ivar project: ID of the administrators' project that it was taken in; empty
        for credentials without one
    :ivar providers: of all trees that a compute host or this project has
    :ivar images: None where they could not be listed
    :ivar volume_types: of Cinder; None without a Cinder, or where nobody asked
    :ivar server_groups: of all projects; None where they could not be listed, or
        nobody asked
    :ivar pci_aliases: those of [pci]alias, as requests of one device each; None where
        nobody looked
    :ivar zones_told: whether Nova tells the zones that servers are bound to
    :ivar migrations: those that are not over, or await their source
    :ivar names: the project's traits and resource classes that exist
    :ivar gaps: what could not be seen, and why
    :ivar unseen_hosts: hosts of cells that Nova could not reach: neither they nor
        what is on them is here, but for what Placement has of them
    :ivar unlisted: hosts of nova-compute of which Nova lists no hypervisor, as before
        ``nova-manage cell_v2 discover_hosts``
    :ivar recent: UUIDs of top providers without a hypervisor that changed in the last
        hour
    :ivar microversion: the newest that Nova's API takes; empty if it does not tell
    :ivar bare_metal: how many nodes of Ironic there are; neither they nor what is on
        them is here
    """

    taken_at: Time
    hosts: tuple[ComputeHost, ...] = ()
    providers: tuple[Provider, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    servers: tuple[Server, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    images: tuple[Image, ...] | None = ()
    volume_types: tuple[str, ...] | None = None
    root_volumes: tuple[RootVolume, ...] = ()
    server_groups: tuple[ServerGroup, ...] | None = None
    pci_aliases: Mapping[str, PCIRequest] | None = None
    zones_told: bool = False
    migrations: tuple[Migration, ...] = ()
    names: frozenset[str] = frozenset()
    gaps: tuple[str, ...] = ()
    unseen_hosts: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    recent: tuple[str, ...] = ()
    policy_digest: str | None = None
    project: str = ""
    microversion: Microversion = ""
    bare_metal: int = 0

    def mistakes(self) -> Iterator[Mistake]:
        """Yield a mistake for each ID that two objects of a kind share."""
        for key, ids in (
            ("hosts", [host.provider for host in self.hosts]),
            ("providers", [provider.uuid for provider in self.providers]),
            ("servers", [server.id for server in self.servers]),
            ("flavors", [flavor.id for flavor in self.flavors]),
            ("server_groups", [group.id for group in self.server_groups or ()]),
        ):
            seen: set[str] = set()
            for index, name in enumerate(ids):
                if name in seen:
                    yield Mistake((key, str(index)), f"{name} is there twice")
                seen.add(name)

    @cached_property
    def provider_by_uuid(self) -> dict[str, Provider]:
        """The providers by UUID."""
        return {provider.uuid: provider for provider in self.providers}

    @cached_property
    def server_by_id(self) -> dict[str, Server]:
        """The servers by ID."""
        return {server.id: server for server in self.servers}

    @cached_property
    def root_volume_by_server(self) -> dict[str, RootVolume]:
        """The boot volume of each server, by the server's ID."""
        return {volume.server: volume for volume in self.root_volumes}

    def image_of(self, server: Server) -> Image | None:
        """Return the image of a server, or None if the snapshot lacks the image."""
        return self._image_by_id.get(server.image or "")

    @cached_property
    def _image_by_id(self) -> dict[str, Image]:
        return {image.id: image for image in self.images or ()}

    @cached_property
    def servers_by_host(self) -> dict[str, tuple[Server, ...]]:
        """The servers on each host, by the service's name."""
        found: dict[str, list[Server]] = {host.host: [] for host in self.hosts}
        for server in self.servers:
            if server.host is not None:
                found.setdefault(server.host, []).append(server)
        return {host: tuple(servers) for host, servers in found.items()}

    @cached_property
    def group_by_server(self) -> dict[str, ServerGroup]:
        """The server group of each server, by the server's ID."""
        return {m: group for group in self.server_groups or () for m in group.members}

    def hosts_of(self, group: ServerGroup) -> frozenset[str]:
        """Return the names of the hosts with servers of a group."""
        found = (self.server_by_id.get(member) for member in group.members)
        return frozenset(server.host for server in found if server and server.host)

    @cached_property
    def held_by_ports(self) -> dict[str, dict[str, dict[str, int]]]:
        """Allocations of Neutron's providers below the hosts', for ports of servers.

        {server's ID: {provider's UUID: {resource class: amount}}}
        """
        found: dict[str, dict[str, dict[str, int]]] = {}
        for provider in self.providers:
            if not any(name.startswith("NET_") for name in provider.inventories):
                continue
            for consumer, taken in provider.allocations.items():
                mine = {n: a for n, a in taken.items() if n.startswith("NET_")}
                if mine:
                    found.setdefault(consumer, {})[provider.uuid] = mine
        return found

    @cached_property
    def moving_by_host(self) -> dict[str, tuple[Server, ...]]:
        """The servers that are elsewhere, and will be or come back when they moved.

        By the name of the host's service.  Records of moves stay unfinished for ever
        where a compute died in the middle, so the server has to say it, too.
        """
        found: dict[str, dict[str, Server]] = {}
        for move in self.migrations:
            server = self.server_by_id.get(move.server)
            if server is None or not server.busy or move.status not in UNFINISHED:
                continue
            for host in (move.source, move.destination):
                if host is not None and host != server.host:
                    found.setdefault(host, {})[server.id] = server
        return {host: tuple(servers.values()) for host, servers in found.items()}

    @cached_property
    def trees(self) -> dict[str, tuple[Provider, ...]]:
        """The providers below each top one, by its UUID; the top one first."""
        found: dict[str, list[Provider]] = {}
        for provider in sorted(self.providers, key=lambda p: p.parent is not None):
            found.setdefault(provider.root or provider.uuid, []).append(provider)
        return {root: tuple(tree) for root, tree in found.items()}

    @cached_property
    def children_by_host(self) -> dict[str, tuple[Provider, ...]]:
        """The providers with names of children, by the name of their host's provider.

        The names alone count, whatever trees the providers are in.
        """
        found: dict[str, list[Provider]] = {}
        for provider in self.providers:
            if host := host_of_child(provider.name):
                found.setdefault(host, []).append(provider)
        return {host: tuple(children) for host, children in found.items()}

    def is_seen(self, provider: Provider) -> bool:
        """Return whether the snapshot shows the host of a provider.

        While a Nova cell is down, a provider without a host may belong to a host of
        that cell, whose name can differ from the provider's.
        """
        return not self.unseen_hosts or (provider.root or provider.uuid) in self._roots

    @cached_property
    def _roots(self) -> frozenset[str]:
        return frozenset(host.provider for host in self.hosts)

    @cached_property
    def oldest_compute(self) -> int:
        """The version of the oldest nova-compute; 0 if any is unknown."""
        return min((host.service_version or 0 for host in self.hosts), default=0)

    @cached_property
    def aggregates_by_host(self) -> dict[str, tuple[Aggregate, ...]]:
        """The aggregates of each host, by the service's name."""
        found: dict[str, tuple[Aggregate, ...]] = {}
        for aggregate in self.aggregates:
            for host in aggregate.hosts:
                found[host] = (*found.get(host, ()), aggregate)
        return found

    def labels(self, host: str) -> frozenset[str]:
        """Return the classes that aggregates reserve a host for."""
        aggregates = self.aggregates_by_host.get(host, ())
        return frozenset(label for found in aggregates for label in found.labels)

    @cached_property
    def migrating(self) -> frozenset[str]:
        """IDs of the servers with an unfinished migration."""
        return frozenset(m.server for m in self.migrations if not m.awaits_source)

    @cached_property
    def left_behind(self) -> frozenset[tuple[str, str]]:
        """IDs of servers, and top providers of hosts that they were evacuated from.

        What they hold there Nova takes away when nova-compute runs there again.
        """
        evacuated = [m for m in self.migrations if m.awaits_source]
        return frozenset(
            (migration.server, host.provider)
            for migration in evacuated
            for host in self.hosts
            if host.host == migration.source
        )
