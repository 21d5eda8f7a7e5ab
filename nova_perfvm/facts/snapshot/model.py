# SPDX-License-Identifier: Apache-2.0
"""The snapshot: all that Nova, Placement, Glance and Cinder show of a cloud."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Final

from nova_perfvm.documents.keys import Expected, Time, matching
from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.facts import PagePool
from nova_perfvm.facts.children import host_of_child
from nova_perfvm.facts.snapshot.groups import ServerGroup
from nova_perfvm.facts.snapshot.pci import PCIPool, PCIRequest
from nova_perfvm.facts.snapshot.resources import (
    Aggregate,
    Flavor,
    Image,
    Migration,
    Provider,
    Server,
    time_of,
)
from nova_perfvm.policy import HostShape

# ``disabled_reason`` of a compute service that ``host enroll`` disables for the time of
# its changes; an enroll that is cut off leaves it.
DISABLED_REASON: Final = "nova-perfvm: enroll in progress, was enabled"

# Sources of a host's NUMA nodes, which no API shows.
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
    :ivar siblings: sets of hardware threads that share a core; empty for no SMT
    :ivar pinned_cpus: CPUs that VMs own, as nova-compute reports; None if unknown:
        readers then take the CPUs of the servers
    :ivar memory_usage_mb: memory of the VMs with a NUMA topology, as nova-compute
        reports; None as for ``pinned_cpus``
    :ivar cpu_usage: unpinned vCPUs of the VMs with a NUMA topology, as nova-compute
        reports; None as for ``pinned_cpus``
    :ivar mempages: memory pages by size; empty if unknown, as no API shows them
    :ivar physnets: physical networks to which the NUMA node has affinity by
        nova-compute's nova.conf; None if unknown
    :ivar socket: ID of the NUMA node's socket; None if unknown
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

    :ivar host: name of the compute service
    :ivar node: name of the hypervisor
    :ivar provider: UUID of the compute node, which its resource provider has, too
    :ivar service: ID of the compute service; empty if unknown
    :ivar up: whether the service reports
    :ivar enabled: whether the scheduler may use the service
    :ivar vcpus: number of CPUs that VMs may share, as Nova reports; 0 without
    :ivar shape: NUMA nodes, cores and threads; None if the API hides them
    :ivar cells: the host's NUMA nodes; empty if unknown
    :ivar cells_source: one of :data:`CELL_SOURCES`
    :ivar vcpus_used: vCPUs of the host's VMs, as nova-compute reports; None if unknown:
        readers then sum up the vCPUs of the servers
    :ivar num_instances: number of the host's VMs, as nova-compute reports; None as for
        ``vcpus_used``
    :ivar pci_pools: the host's free PCI devices; None if not looked up
    :ivar unreadable: why the host's record in Nova's database is unreadable; empty if
        it was read, or not asked for
    :ivar service_version: version of nova-compute by Nova's database; None if unknown
    :ivar reported: figures in the files of earlier releases; ignored
    :ivar capabilities: values that nova-scheduler's filters read, by attribute of
        HostState; lists and dictionaries as JSON.  The API shows only some of them
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
    def pages_told(self) -> bool:
        """Return whether the numbers of memory pages by size are known."""
        return any(cell.mempages for cell in self.cells)

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
    """A cloud at one time, or some of its hosts with their providers and servers.

    :ivar taken_at: time of the last answer of an API, ISO 8601, UTC
    :ivar providers: all resource providers but those of Ironic nodes; for some hosts,
        the providers of their trees, and any with the name of a host's child
    :ivar images: the cloud's images; None if Glance did not list them
    :ivar volume_types: Cinder's volume types; None without Cinder, or if not asked for
    :ivar server_groups: server groups of all projects; None if Nova did not list them,
        or was not asked
    :ivar pci_aliases: aliases of [pci]alias by name, as requests of one device each;
        None if not looked up
    :ivar zones_told: whether Nova shows the zones that servers are bound to
    :ivar migrations: unfinished moves, and evacuations that await their source host
    :ivar names: nova-perfvm's traits, and resource classes of its child providers, that
        Placement knows
    :ivar gaps: messages about data that could not be read, with the reason
    :ivar unseen_hosts: hosts of Nova cells that Nova could not reach; the snapshot has
        only Placement's data of them
    :ivar unlisted: hosts with nova-compute, but without a hypervisor in Nova's list, as
        before ``nova-manage cell_v2 discover_hosts``
    :ivar recent: UUIDs of root providers without a hypervisor that changed in the last
        hour
    :ivar policy_digest: digest of the policy that the snapshot was taken with; None
        without a policy
    :ivar project: ID of the administrators' project that the snapshot was taken with;
        empty for credentials without a project
    :ivar microversion: the newest microversion of Nova's API; empty if unknown
    :ivar bare_metal: number of Ironic nodes; the snapshot leaves these and their
        servers out
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
                    yield Mistake((key, str(index)), f"{name} is listed twice")
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
        """Return a server's image; None without one, or if the snapshot lacks it."""
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
        """Allocations of Neutron's ``NET_`` resource classes, for ports of servers.

        {consumer, mostly a server's ID: {provider's UUID: {resource class: amount}}}
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
        """The servers on other hosts that may move, or move back, to each host.

        By the name of the host's service.  If nova-compute dies during a move, the
        move's record stays unfinished for ever, so the server has to be busy, too.
        """
        found: dict[str, dict[str, Server]] = {}
        for move in self.migrations:
            server = self.server_by_id.get(move.server)
            if server is None or not server.busy:
                continue
            for host in move.claimed_hosts:
                if host != server.host:
                    found.setdefault(host, {})[server.id] = server
        return {host: tuple(servers.values()) for host, servers in found.items()}

    @cached_property
    def trees(self) -> dict[str, tuple[Provider, ...]]:
        """Each provider tree, the root first, by the root's UUID."""
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
        """Return whether the snapshot has a provider's host, or no Nova cell is down.

        While a Nova cell is down, a provider without a host may belong to a host of
        that cell, whose name can differ from the provider's.
        """
        return not self.unseen_hosts or (provider.root or provider.uuid) in self._roots

    @cached_property
    def _roots(self) -> frozenset[str]:
        return frozenset(host.provider for host in self.hosts)

    @cached_property
    def oldest_compute(self) -> int:
        """The oldest nova-compute's version; 0 if one is unknown, or without hosts."""
        return min((host.service_version or 0 for host in self.hosts), default=0)

    @cached_property
    def aggregates_by_host(self) -> dict[str, tuple[Aggregate, ...]]:
        """The aggregates of each host, by the service's name."""
        found: dict[str, tuple[Aggregate, ...]] = {}
        for aggregate in self.aggregates:
            for host in aggregate.hosts:
                found[host] = (*found.get(host, ()), aggregate)
        return found

    @cached_property
    def aggregates_by_zone(self) -> dict[str, frozenset[str]]:
        """UUIDs of the aggregates that make each availability zone."""
        found: dict[str, frozenset[str]] = {}
        for one in self.aggregates:
            found[one.zone] = found.get(one.zone, frozenset()) | {one.uuid}
        found.pop("", None)
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
    def left_moves(self) -> tuple[Migration, ...]:
        """The migrations that Nova has given up, and whose records stay unfinished."""
        now = time_of(self.taken_at)
        at_rest = {server.id for server in self.servers if not server.busy}
        return tuple(
            m for m in self.migrations if m.server in at_rest and m.is_left(now)
        )

    @cached_property
    def moving(self) -> frozenset[str]:
        """IDs of the servers with a migration on which Nova may be at work."""
        left = {m.id for m in self.left_moves}
        going = (m for m in self.migrations if m.id not in left)
        return frozenset(m.server for m in going if not m.awaits_source)

    @cached_property
    def left_behind(self) -> frozenset[tuple[str, str]]:
        """Pairs (ID of an evacuated server, UUID of its old host's root provider).

        Nova removes the server's allocations on the old host when nova-compute runs
        there again.
        """
        evacuated = [m for m in self.migrations if m.awaits_source]
        return frozenset(
            (migration.server, host.provider)
            for migration in evacuated
            for host in self.hosts
            if host.host == migration.source
        )
