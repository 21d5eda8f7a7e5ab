# SPDX-License-Identifier: Apache-2.0
"""What a cloud shows of a host's providers, aggregates and servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nova_perfvm import constants as const
from nova_perfvm.facts.snapshot.resources import Aggregate, Provider, Server
from nova_perfvm.policy import HostShape

# Placement's names for CPUs that VMs own, and for CPUs that they share.
PCPU = "PCPU"
VCPU = "VCPU"
DISK = "DISK_GB"

# The service was enabled, and an interrupted run took it out of service.
DISABLED_REASON = "nova-perfvm: enroll in progress, was enabled"

# Enrolling marks the aggregates that it creates; others are somebody else's.
CREATED = {const.CREATED_BY_KEY: "enroll"}


def isolating(trait: str) -> dict[str, str]:
    """Return the metadata by which an aggregate keeps out who does not ask for it."""
    return {f"trait:{trait}": "required"}


@dataclass(frozen=True)
class ComputeService:
    """The compute service of a host."""

    id: str
    enabled: bool
    reason: str | None = None

    @property
    def interrupted(self) -> bool:
        """Return whether a run that was cut off left it disabled."""
        return not self.enabled and self.reason == DISABLED_REASON


@dataclass(frozen=True)
class ElasticHost:
    """All that matters of one compute host.

    :ivar host: the compute service's name
    :ivar root: the provider of the compute
    :ivar below: the other providers of its tree, whoever made them
    :ivar detached: empty providers below nothing with the name of a child of this
        host: those that an earlier run has taken out of the tree
    :ivar strayed: such that are not empty: somebody filled them meanwhile
    :ivar elsewhere: UUIDs by name, of providers in other trees that have a name
        which a child of this host should have
    :ivar servers: servers that Nova has on the host
    :ivar consumers: what the other consumers of the tree are, in words, by ID
    :ivar aggregates: all of the cloud
    :ivar names: which of the project's traits and resource classes exist
    :ivar shape: NUMA nodes, cores and threads as Nova shows them, if it does
    """

    host: str
    service: ComputeService
    root: Provider
    below: tuple[Provider, ...] = ()
    detached: tuple[Provider, ...] = ()
    strayed: tuple[Provider, ...] = ()
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    servers: tuple[Server, ...] = ()
    consumers: Mapping[str, str] = field(default_factory=dict)
    aggregates: tuple[Aggregate, ...] = ()
    names: frozenset[str] = frozenset()
    shape: HostShape | None = None

    @property
    def children(self) -> tuple[Provider, ...]:
        """The child providers with units, or with the name of such a one.

        Those that have strayed count, until they are back or empty.
        """
        prefix = f"{self.root.name}_perfvm_"
        return tuple(
            provider
            for provider in (*self.below, *self.strayed)
            if provider.name.startswith(prefix) or const.RC_UNIT in provider.inventories
        )

    @property
    def enrolled(self) -> bool:
        """Return whether the host is open to VMs with units, whatever their m."""
        return bool(self.root.elastic_traits)

    @property
    def isolated_by(self) -> tuple[Aggregate, ...]:
        """The aggregates that keep VMs without units off the host."""
        return tuple(a for a in self.aggregates if a.isolates and self.host in a.hosts)

    @property
    def closed(self) -> bool:
        """Return whether Placement, too, knows of one of those aggregates."""
        return any(a.uuid in self.root.aggregates for a in self.isolated_by)

    @property
    def remains(self) -> tuple[str, ...]:
        """What a run that was cut off has left behind, and what ends it."""
        if not self.service.interrupted:
            return ()
        cause = f"nova-compute on {self.host} is disabled since an enroll was cut off"
        enable = f"openstack compute service set --enable {self.host} nova-compute"
        return (f"{cause}: {enable}",)

    def describe(self, consumer: str) -> str:
        """Name a consumer to an operator."""
        for server in self.servers:
            if server.id == consumer:
                return str(server)
        return self.consumers.get(consumer, f"consumer {consumer}")


def describe_consumer(consumer: str, server: Server | None) -> str:
    """Return what a consumer of a host is that is no server on the host.

    :param server: the server with this ID, if there is one
    """
    if server is None:
        return f"consumer {consumer}, a migration or what is left of one,"
    if server.host:
        return f"{server}, which Nova has on {server.host},"
    return f"{server}, which is on no host yet,"
