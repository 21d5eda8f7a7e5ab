# SPDX-License-Identifier: Apache-2.0
"""The resources of a cloud in Nova, Placement and Glance, as frozen values.

Memory is in MiB, disk in GiB.  The values are those of the APIs, without conclusions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.facts.labels import labels_of
from nova_perfvm.facts.migration_states import REVERTED
from nova_perfvm.facts.placement_request import elastic_traits, required_traits
from nova_perfvm.facts.snapshot.pci import PCIPool, PCIRequest
from nova_perfvm.printable import one_line

# The status of a server that was shelved, and is on no host.
OFFLOADED: Final = "SHELVED_OFFLOADED"
# [DEFAULT]long_rpc_timeout, the longest time that Nova waits for an answer.
_LONGEST_ANSWER: Final = dt.timedelta(seconds=1800)


def time_of(text: str) -> dt.datetime | None:
    """Return a time of Nova's API, UTC if it has no offset; None if unreadable."""
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Inventory:
    """A provider's inventory of one resource class, with Placement's limits."""

    total: int
    max_unit: int
    min_unit: int = 1
    step_size: int = 1
    reserved: int = 0
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        """The allocatable amount."""
        return int((self.total - self.reserved) * self.allocation_ratio)


@dataclass(frozen=True)
class Provider:
    """One resource provider.

    :ivar generation: Placement refuses changes that name an older generation
    :ivar inventories: by resource class
    :ivar allocations: {consumer, mostly a server's ID: {resource class: amount}}
    :ivar aggregates: UUIDs of the provider's aggregates in Placement
    :ivar parent: UUID of the parent provider; None at the root of a tree
    :ivar root: UUID of the root of the provider's tree
    """

    uuid: str
    name: str
    generation: int
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    allocations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    aggregates: frozenset[str] = frozenset()
    parent: str | None = None
    root: str = ""

    @cached_property
    def elastic_traits(self) -> frozenset[str]:
        """The traits of an enrolled host; several of them are a mistake."""
        return elastic_traits(self.traits)

    @property
    def detached(self) -> bool:
        """Whether the provider has no parent, inventories, traits and allocations.

        Enrolling leaves a surplus child of a host in this state.
        """
        return self.parent is None and not (
            self.inventories or self.traits or self.allocations
        )

    @property
    def mode(self) -> str:
        """The mode of the provider's host, from its inventories of PCPU and VCPU.

        ``dedicated``: all CPUs may be pinned; ``mixed``: some; ``open``: no cpu set is
        configured, or all CPUs are shared: the APIs do not show the difference.
        """
        if self.total("PCPU"):
            return "mixed" if self.total("VCPU") else "dedicated"
        return "open"

    def total(self, resource_class: str) -> int:
        """Return the total of a resource class, 0 without an inventory."""
        found = self.inventories.get(resource_class)
        return found.total if found else 0

    def used(self, resource_class: str) -> int:
        """Return the allocated amount of a resource class."""
        return sum(taken.get(resource_class, 0) for taken in self.allocations.values())

    def overused(self) -> Iterator[tuple[str, int, int]]:
        """Yield (resource class, used, capacity) where the use exceeds the capacity."""
        for name, inventory in self.inventories.items():
            used = self.used(name)
            if used > inventory.capacity:
                yield name, used, inventory.capacity

    def without(self, consumers: AbstractSet[str]) -> Provider:
        """Return the provider without the allocations of some consumers."""
        if consumers.isdisjoint(self.allocations):
            return self
        kept = {c: r for c, r in self.allocations.items() if c not in consumers}
        return replace(self, allocations=kept)

    @property
    def gives_all_units(self) -> bool:
        """Return whether the provider has units, and one VM may take all of them."""
        found = self.inventories.get(const.RC_UNIT)
        return found is not None and found.max_unit == found.total

    def units(self) -> dict[str, int]:
        """Return {consumer: number of units}, without consumers that hold no units."""
        held = self.held_of_child().items()
        return {c: taken[const.RC_UNIT] for c, taken in held if const.RC_UNIT in taken}

    def held_of_child(self) -> dict[str, dict[str, int]]:
        """Return each consumer's amounts of the resource classes of child providers."""
        found = {
            consumer: {n: a for n, a in resources.items() if n in const.CHILD_CLASSES}
            for consumer, resources in self.allocations.items()
        }
        return {consumer: taken for consumer, taken in found.items() if taken}


@dataclass(frozen=True)
class ServerCell:
    """One NUMA node of a server.

    :ivar host_node: ID of the host's NUMA node; None if unknown
    :ivar vcpus: the server's vCPUs on this NUMA node
    :ivar cpu_pinning: {pinned vCPU: the host's CPU}
    :ivar siblings: sets of vCPUs that share a core, as Nova lists them
    """

    host_node: int | None
    vcpus: frozenset[int]
    memory_mb: int
    cpu_pinning: Mapping[int, int] = field(default_factory=dict)
    siblings: tuple[frozenset[int], ...] = ()

    @property
    def shared_vcpus(self) -> int:
        """The number of unpinned vCPUs on this NUMA node."""
        return len(self.vcpus) - len(self.cpu_pinning)


# Statuses in which Nova may soon add or remove allocations of the server.
_BUSY: Final = frozenset({"BUILD", "RESIZE", "VERIFY_RESIZE", "MIGRATING", "REBUILD"})
# nova.api.openstack.common shows these from the end of a resize to its confirmation or
# the end of its revert.
_RESIZED: Final = frozenset({"VERIFY_RESIZE", "REVERT_RESIZE"})


@dataclass(frozen=True)
class Server:
    """A server as Nova shows it, with the flavor that is embedded in it.

    :ivar host: name of the compute service; None if the server is on no host
    :ivar pinned: whether the server owns CPUs; None if not looked up
    :ivar task: Nova's ``task_state`` of the server; None without a task
    :ivar flavor: name of the flavor at the server's creation or last resize
    :ivar other_disks_gb: size of the ephemeral disk and swap
    :ivar image: ID of the server's image; None if the server was created from a volume
    :ivar volume_root: whether the root disk is a volume although ``image`` is set, as
        with an image that is a snapshot of a server on a volume
    :ivar fault: message of the server's last fault; empty without one
    :ivar availability_zone: zone of the server's host; without a host, the requested
        zone
    :ivar bound_zone: zone that moves keep to; empty if unbound, or if unknown
        (``Snapshot.zones_told``)
    :ivar created: time of the server's creation, ISO 8601
    :ivar updated: time of the last change, ISO 8601
    :ivar launched: time when Nova last built, resized, cold-migrated, evacuated or
        unshelved the server, ISO 8601
    :ivar cells: the server's NUMA topology, empty without one; None if not looked up,
        as for servers whose flavor and image ask for none
    :ivar page_size_kb: size of the server's memory pages in KiB; None if unknown
    :ivar pci_requests: PCI devices that the server asked for; None if not looked up
    :ivar pci_devices: PCI devices of the host that the server has
    """

    id: str
    name: str
    host: str | None
    status: str
    vcpus: int
    extra_specs: Mapping[str, str]
    pinned: bool | None = None
    task: str | None = None
    project: str = ""
    node: str | None = None
    flavor: str = ""
    memory_mb: int = 0
    disk_gb: int = 0
    other_disks_gb: int = 0
    image: str | None = None
    volume_root: bool = False
    fault: str = ""
    availability_zone: str = ""
    bound_zone: str = ""
    created: str = ""
    updated: str = ""
    launched: str = ""
    cells: tuple[ServerCell, ...] | None = None
    page_size_kb: int | None = None
    pci_requests: tuple[PCIRequest, ...] | None = None
    pci_devices: tuple[PCIPool, ...] = ()

    def __str__(self) -> str:
        """Return name and ID."""
        return f"{self.name} ({self.id})"

    @property
    def embedded(self) -> Flavor:
        """The server's embedded flavor."""
        return Flavor(
            id=self.flavor,
            name=self.flavor,
            vcpus=self.vcpus,
            memory_mb=self.memory_mb,
            disk_gb=self.disk_gb,
            extra_specs=self.extra_specs,
            other_disks_gb=self.other_disks_gb,
        )

    @property
    def volume_backed(self) -> bool:
        """Return whether the server's root disk is a volume."""
        return self.image is None or self.volume_root

    @property
    def known(self) -> bool:
        """Return whether Nova shows the server's details; not while its cell is down.

        Without details the server has 0 vCPUs; every flavor has at least 1.
        """
        return bool(self.vcpus)

    @property
    def busy(self) -> bool:
        """Return whether Nova may be about to change the server's allocations.

        The snapshot's migrations show further changes.
        """
        return self.task is not None or not self.known or self.status in _BUSY

    @property
    def resized(self) -> bool:
        """Return whether a resize or cold migration of the server can be reverted."""
        return self.status in _RESIZED

    @property
    def owns_cpus(self) -> bool:
        """Return whether the server owns CPUs, by its flavor if pins are unknown."""
        if self.pinned is None:
            return self.extra_specs.get(const.CPU_POLICY) == "dedicated"
        return self.pinned

    @property
    def pins_hidden(self) -> bool:
        """Return whether the server owns CPUs of its host that are unknown."""
        return self.pinned is None and self.owns_cpus and self.host is not None

    @property
    def built(self) -> bool:
        """Return whether the server has a host or is offloaded, so that it can move."""
        return self.host is not None or self.status == OFFLOADED

    @property
    def pins(self) -> dict[int, int]:
        """{vCPU: owned CPU of the host}."""
        return {v: c for cell in self.cells or () for v, c in cell.cpu_pinning.items()}

    @property
    def pinned_cpus(self) -> frozenset[int]:
        """The host's CPUs that the server owns."""
        return frozenset(self.pins.values())

    @property
    def pinned_nodes(self) -> frozenset[int]:
        """The host's NUMA nodes on which the server owns CPUs, as far as Nova tells."""
        nodes = {cell.host_node for cell in self.cells or () if cell.cpu_pinning}
        return frozenset(node for node in nodes if node is not None)


# Metadata of the aggregates that enrolling creates.
CREATED: Final = {const.CREATED_BY_KEY: "enroll"}


def isolating(trait: str) -> dict[str, str]:
    """Return the metadata of an aggregate that admits only requests with a trait."""
    return {f"trait:{trait}": "required"}


@dataclass(frozen=True)
class Aggregate:
    """A host aggregate of Nova."""

    id: int
    uuid: str
    name: str
    metadata: Mapping[str, str]
    hosts: frozenset[str]

    @property
    def zone(self) -> str:
        """The availability zone that the aggregate makes; empty for none."""
        return self.metadata.get("availability_zone", "")

    @cached_property
    def required_traits(self) -> frozenset[str]:
        """The traits that the aggregate requires of requests for its hosts."""
        return required_traits(self.metadata)

    @property
    def elastic_traits(self) -> frozenset[str]:
        """The traits of enrolled hosts among ``required_traits``."""
        return elastic_traits(self.required_traits)

    @property
    def labels(self) -> frozenset[str]:
        """The classes that the aggregate reserves its hosts for."""
        return labels_of(self.metadata)

    @property
    def isolates(self) -> bool:
        """Return whether the aggregate keeps requests without units off its hosts."""
        return bool(self.elastic_traits)

    @property
    def made_by_enroll(self) -> bool:
        """Return whether an enroll made the aggregate; its classes may differ since."""
        keys = {f"trait:{trait}" for trait in self.elastic_traits}
        return (
            self.isolates
            and self.metadata.keys() - {const.CLASS_KEY}
            == keys | {const.CREATED_BY_KEY}
            and self.metadata[const.CREATED_BY_KEY] == "enroll"
        )


@dataclass(frozen=True)
class Flavor:
    """A flavor.

    :ivar other_disks_gb: size of the ephemeral disk and swap
    """

    id: str
    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    other_disks_gb: int = 0


# Glance's standard fields of an image; other fields with text are properties.
IMAGE_MEMBERS: Final = frozenset(
    {
        *("checksum", "container_format", "created_at", "direct_url", "disk_format"),
        *("file", "id", "locations", "min_disk", "min_ram", "name", "os_hash_algo"),
        *("os_hash_value", "os_hidden", "owner", "protected", "schema", "self"),
        *("size", "status", "stores", "tags", "updated_at", "virtual_size"),
        "visibility",
    }
)


@dataclass(frozen=True)
class Image:
    """An image, with the properties that are text.

    :ivar hidden: whether lists omit the image; servers can still boot from it
    :ivar owner: ID of the owning project; empty without owner
    :ivar visibility: public, community, shared or private
    :ivar disk_format: such as ``qcow2``; empty if unknown
    """

    id: str
    name: str
    properties: Mapping[str, str] = field(default_factory=dict)
    hidden: bool = False
    tags: frozenset[str] = frozenset()
    owner: str = ""
    visibility: str = "public"
    disk_format: str = ""
    min_ram_mb: int = 0
    min_disk_gb: int = 0

    @property
    def title(self) -> str:
        """The image's name in one line, or the ID of a nameless image."""
        return one_line(self.name) or self.id

    def belongs_to_tenant(self, project: str) -> bool:
        """Return whether a tenant may have written the image's properties.

        Only administrators make images public.  For other images Glance does not show
        who has set a tag or property.

        :param project: ID of the administrators' project
        """
        return self.visibility != "public" and self.owner != project


@dataclass(frozen=True)
class Migration:
    """An unfinished move, or an evacuation that awaits its source host.

    A reverted move is unfinished until its server is back on the source.

    :ivar id: UUID of the migration, the consumer of the allocations on the source; for
        an evacuation awaiting its source, the consumer is the server
    :ivar kind: migration, resize, live-migration or evacuation
    :ivar updated: time of the record's last change, ISO 8601; empty if unknown
    """

    id: str
    server: str
    kind: str
    status: str
    source: str | None = None
    destination: str | None = None
    updated: str = ""

    @property
    def awaits_source(self) -> bool:
        """Whether this evacuation ends when nova-compute runs again on the source."""
        return (self.kind, self.status) == ("evacuation", "done")

    def is_left(self, now: dt.datetime | None) -> bool:
        """Return whether Nova has given up this move of a server that is not busy.

        If nova-compute restarts while a migration is queued, or an operator sets the
        server's state, the record stays unfinished for ever.  The server of a younger
        record may have begun to move after it was read.
        """
        since = time_of(self.updated)
        if self.awaits_source or now is None or since is None:
            return False
        return now - since > _LONGEST_ANSWER

    @property
    def claimed_hosts(self) -> tuple[str, ...]:
        """The hosts on which nova-compute counts the server until the move is over."""
        if self.awaits_source:
            return ()
        hosts = (self.source, None if self.status == REVERTED else self.destination)
        return tuple(filter(None, hosts))
