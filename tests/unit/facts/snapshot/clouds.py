# SPDX-License-Identifier: Apache-2.0
"""Clouds as snapshots show them, made of few words."""

import dataclasses

from nova_perfvm import constants as const
from nova_perfvm.facts.snapshot import (
    ASSUMED,
    UNKNOWN,
    Aggregate,
    ComputeHost,
    Flavor,
    Inventory,
    Provider,
    Server,
    ServerCell,
    ServerGroup,
    Snapshot,
    assume_cells,
)
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.placement.host_schemes.units import children_named
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.placement.schemes.units import UNITS
from nova_perfvm.policy import HostShape, loader
from nova_perfvm.rules.slots import host_slots

POLICY = loader.load()
HP = "hp.20c.64g"
GENERAL = "g.2c.4g"


class Cloud:
    """A cloud that is as the policy wants it, until a test changes it.

    :ivar parts: the members of the snapshot, lists where it has tuples
    """

    def __init__(self, policy=POLICY):
        self.policy = policy
        self.flavors = {
            flavor.name: Flavor(
                id=flavor.name,
                name=flavor.name,
                vcpus=flavor.vcpus,
                memory_mb=flavor.memory_mb,
                disk_gb=flavor.root_gb,
                extra_specs=dict(flavor.extra_specs),
            )
            for flavor in generate_flavors(policy)
        }
        self.hosts = {}
        self.providers = {}
        self.servers = {}
        self.parts = {"server_groups": ()}

    def add_host(self, name, mode="dedicated", shape="2x20", memory_gb=500):
        """Add a host; general ones are ``shared``."""
        shape = HostShape.parse(shape)
        dedicated = shape.cpus if mode == "dedicated" else 0
        memory_mb = memory_gb * 1024
        self.hosts[name] = ComputeHost(
            host=name, node=name, provider=f"p-{name}", service=f"s-{name}", shape=shape
        )
        inventories = {"MEMORY_MB": Inventory(memory_mb, memory_mb)}
        traits = set()
        if dedicated:
            inventories["PCPU"] = Inventory(dedicated, dedicated)
            scheme = scheme_of(self.policy)
            if scheme.offers_slots:
                (vm_class,) = self.policy.pinned_classes
                cells = assume_cells(shape, dedicated, 0, memory_mb)
                slots = host_slots(vm_class, _facts_cells(cells))
                offer = host_scheme_of(self.policy).offers(
                    self.policy, vm_class, mode, slots
                )
                inventories |= offer.inventories
                traits |= offer.traits
        else:
            inventories["VCPU"] = Inventory(shape.cpus, shape.cpus, allocation_ratio=4)
        self.providers[name] = Provider(
            uuid=f"p-{name}",
            name=name,
            generation=1,
            inventories=inventories,
            traits=frozenset(traits),
            root=f"p-{name}",
        )

    def add_elastic(self, name, slots=2, shape="2x20", memory_gb=500):
        """Add an enrolled host that takes so many high-performance VMs."""
        self.add_host(name, "shared", shape, memory_gb)
        trait = UNITS.enrolled_trait(self.policy)
        self.change_inventories(name, DISK_GB=Inventory(9000, 9000))
        self.change_provider(
            name, traits=frozenset({trait}), aggregates=frozenset({"elastic"})
        )
        for child in children_named(self.policy, name, slots):
            self.providers[child.name] = Provider(
                uuid=child.name,
                name=child.name,
                generation=1,
                inventories=child.inventories,
                traits=frozenset({child.trait}),
                parent=f"p-{name}",
                root=f"p-{name}",
            )
        names = frozenset({name})
        for aggregate in self.parts.get("aggregates", ()):
            names |= aggregate.hosts
        metadata = {f"trait:{trait}": "required"}
        self.parts["aggregates"] = (
            Aggregate(1, "elastic", "elastic", metadata, names),
        )

    def add_group(self, policy, *servers, most=1):
        """Put servers into a server group of its own; return its ID."""
        members = frozenset(f"i-{server}" for server in servers)
        known = self.parts["server_groups"]
        name = f"group{len(known)}"
        group = ServerGroup(f"i-{name}", name, policy, members, most)
        self.parts["server_groups"] = (*known, group)
        return group.id

    def allocate_units(self, consumer, host):
        """Let a general VM have a unit of each child of an elastic host."""
        for provider in list(self.providers.values()):
            if provider.parent == f"p-{host}":
                self.allocate(consumer, provider.name, {const.RC_UNIT: 1})

    def add_hp(self, name, host, first=0, node=0, count=20, flavor=HP, **changes):
        """Add a high-performance VM that owns so many CPUs from the first on."""
        pins = {vcpu: first + vcpu for vcpu in range(count)}
        given = self.flavors[flavor]
        cell = ServerCell(node, frozenset(range(20)), given.memory_mb, pins)
        resources = {"PCPU": 20, "MEMORY_MB": given.memory_mb}
        scheme = scheme_of(self.policy)
        if scheme.offers_slots:
            (vm_class,) = self.policy.pinned_classes
            resources |= scheme.amounts(self.policy, vm_class, given.memory_mb)
        changes = {"cells": (cell,), "pinned": bool(count)} | changes
        self.add(name, host, flavor, resources, **changes)

    def add_general(self, name, host, flavor=GENERAL, **changes):
        """Add a VM that shares CPUs."""
        given = self.flavors[flavor]
        resources = {"VCPU": given.vcpus, "MEMORY_MB": given.memory_mb}
        self.add(name, host, flavor, resources, **{"image": "image"} | changes)

    def add(self, name, host, flavor, resources, **changes):
        """Add a server and what it has been allocated."""
        given = self.flavors[flavor]
        server = Server(
            id=f"i-{name}",
            name=name,
            host=host,
            status="ACTIVE",
            vcpus=given.vcpus,
            extra_specs=given.extra_specs,
            node=host,
            flavor=given.name,
            memory_mb=given.memory_mb,
            disk_gb=given.disk_gb,
        )
        self.servers[name] = dataclasses.replace(server, **changes)
        if host is not None:
            self.allocate(f"i-{name}", host, resources)

    def allocate(self, consumer, host, resources):
        """Let a consumer have something of a host."""
        before = self.providers[host].allocations
        self.change_provider(host, allocations={**before, consumer: resources})

    def change_provider(self, name, **changes):
        """Change members of a provider."""
        self.providers[name] = dataclasses.replace(self.providers[name], **changes)

    def change_inventories(self, name, **inventories):
        """Change inventories of a provider; None takes one away."""
        changed = {**self.providers[name].inventories, **inventories}
        kept = {key: found for key, found in changed.items() if found is not None}
        self.change_provider(name, inventories=kept)

    def change_server(self, name, **changes):
        """Change members of a server."""
        self.servers[name] = dataclasses.replace(self.servers[name], **changes)

    def change_flavor(self, name, **changes):
        """Change members of a flavor; servers keep what they have."""
        self.flavors[name] = dataclasses.replace(self.flavors[name], **changes)

    def snapshot(self):
        """Return the snapshot, its hosts with cells."""
        self._here = {}
        for server in self.servers.values():
            self._here.setdefault(server.host, []).append(server)
        return Snapshot(
            taken_at="2026-01-01T00:00:00+00:00",
            hosts=tuple(self._with_cells(host) for host in self.hosts.values()),
            providers=tuple(self.providers.values()),
            servers=tuple(self.servers.values()),
            flavors=tuple(self.flavors.values()),
            **self.parts,
        )

    def _with_cells(self, host):
        provider = self.providers[host.host]
        servers = self._here.get(host.host, ())
        totals = [provider.total(name) for name in ("PCPU", "VCPU", "MEMORY_MB")]
        cells = assume_cells(host.shape, *totals, servers)
        return dataclasses.replace(host, cells=cells, cells_source=ASSUMED)


def blind(snapshot):
    """Return a snapshot whose hosts do not show their NUMA nodes."""
    unseen = {"shape": None, "cells": (), "cells_source": UNKNOWN}
    hosts = (dataclasses.replace(host, **unseen) for host in snapshot.hosts)
    return dataclasses.replace(snapshot, hosts=tuple(hosts))


def _facts_cells(cells):
    from nova_perfvm.facts import NUMACell

    return [
        NUMACell(c.id, c.cpuset, c.pcpuset, frozenset(), c.memory_mb, 0, c.siblings)
        for c in cells
    ]
