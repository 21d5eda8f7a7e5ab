# SPDX-License-Identifier: Apache-2.0
"""Hosts without nova-compute, which Nova's scheduler and Placement fill.

Placement has the hosts and what is claimed.  nova-scheduler sees of a host what it
would see had nova-compute claimed each VM at once: Nova's own code does that here.
"""

import collections
import uuid

import oslo_messaging as messaging
from nova import context, objects
from nova.scheduler import host_manager
from nova.virt import hardware
from oslo_serialization import jsonutils
from placement import db_api

from nova_perfvm.facts.children import child_uuid
from tests.operations.cells import CPU, MEMORY

CELLS, CORES, MEMORY_MB, PAGE_KB = 2, 20, 250 * 1024, 4
TRAIT = "CUSTOM_PERFVM_CELLS"
USER = {"user_id": str(uuid.uuid4()), "project_id": str(uuid.uuid4())}


class Hosts:
    """Hosts of two NUMA nodes that are alike.

    :param test: a clouds.Cloud without hosts
    :param count: how many there are
    :param counted: whether Placement knows their NUMA nodes
    :ivar free: {(host, node): [CPUs, memory in MB] that no VM has}
    """

    def __init__(self, test, count, *, counted):
        self._placement = test.cloud._services.placement
        self._scheduler = test.cloud._services.scheduler.manager
        self._scheduler.host_manager.get_host_states_by_uuids = self._states
        self._counted = counted
        self._names = {}
        for name in (CPU, MEMORY) if counted else ():
            self._put(f"/resource_classes/{name}")
        if counted:
            self._put(f"/traits/{TRAIT}")
        for number in range(count):
            self._enter(f"host{number + 1}")
        self._flavors = {
            flavor.name: flavor
            for flavor in objects.FlavorList.get_all(context.get_admin_context())
        }
        self.clear()

    def clear(self):
        """Take all VMs away."""
        with db_api.get_placement_engine().begin() as connection:
            for table in ("allocations", "consumers"):
                connection.exec_driver_sql(f"DELETE FROM {table}")
        self._topologies = {
            name: objects.NUMATopology(cells=[*map(self._cell, range(CELLS))])
            for name in self._names.values()
        }
        self.free = {
            (name, node): [CORES, MEMORY_MB]
            for name in self._names.values()
            for node in range(CELLS)
        }

    def has_room(self, flavor):
        """Return whether a NUMA node has room for a VM."""
        wanted = self._flavors[flavor]
        return any(
            cpus >= wanted.vcpus and memory_mb >= wanted.memory_mb
            for cpus, memory_mb in self.free.values()
        )

    def place(self, flavor):
        """Schedule a VM of one NUMA node, and claim; return whether it has a host.

        :raises AssertionError: when the claim fails on the host, or is not where
            Placement's is
        """
        wanted = self._flavors[flavor]
        image = objects.ImageMeta(properties=objects.ImageMetaProps())
        topology = hardware.numa_get_constraints(wanted, image)
        server = str(uuid.uuid4())
        admin = context.RequestContext(**USER, is_admin=True)
        spec = objects.RequestSpec.from_components(
            admin,
            server,
            image,
            wanted,
            topology.obj_clone(),
            objects.InstancePCIRequests(requests=[]),
            {},
            None,
            None,
        )
        spec.is_bfv = True
        spec.requested_resources = []
        spec.request_level_params = objects.RequestLevelParams()
        try:
            ((chosen,),) = self._scheduler.select_destinations(
                admin, spec_obj=spec, instance_uuids=[server], return_objects=True
            )
        except messaging.ExpectedException:
            # That is NoValidHost, as oslo.messaging is to take it.
            return False
        self._claim(chosen, wanted, topology)
        return True

    def _claim(self, chosen, flavor, topology):
        """Do as nova-compute does, and compare with what was claimed in Placement."""
        host = chosen.service_host
        limits = chosen.limits.numa_topology
        fit = hardware.numa_fit_instance_to_host(
            self._topologies[host], topology, limits=limits, provider_mapping=None
        )
        assert fit, f"{flavor.name} on {host}: {self.free}"
        self._topologies[host] = hardware.numa_usage_from_instance_numa(
            self._topologies[host], fit
        )
        (node,) = [cell.id for cell in fit.cells]
        self.free[host, node][0] -= flavor.vcpus
        self.free[host, node][1] -= flavor.memory_mb
        assert min(self.free[host, node]) >= 0, (host, node, self.free[host, node])
        if self._counted:
            taken = jsonutils.loads(chosen.allocation_request)["allocations"]
            name = _cell_name(host, node)
            found = taken[child_uuid(chosen.compute_node_uuid, name)]["resources"]
            assert found == {CPU: flavor.vcpus, MEMORY: flavor.memory_mb}, found
            assert len(taken) == 2, taken

    # What Placement and the scheduler know

    def _put(self, path, body=None):
        answer = self._placement.put(path, body, version="1.36")
        assert answer.status in {200, 201, 204}, answer.body

    def _enter(self, name):
        """Make a host known to Placement, as nova-compute and enrolling do."""
        root = str(uuid.uuid4())
        self._names[root] = name
        amounts = {"PCPU": CELLS * CORES, "MEMORY_MB": CELLS * MEMORY_MB}
        self._provide(root, name, amounts, [TRAIT] if self._counted else [])
        for node in range(CELLS if self._counted else 0):
            child = _cell_name(name, node)
            amounts = {CPU: CORES, MEMORY: MEMORY_MB}
            self._provide(child_uuid(root, child), child, amounts, [TRAIT], root)

    def _provide(self, provider, name, amounts, traits, parent=None):
        body = {"uuid": provider, "name": name, "parent_provider_uuid": parent}
        answer = self._placement.post("/resource_providers", body, version="1.36")
        assert answer.status == 200, answer.body
        path = f"/resource_providers/{provider}"
        inventories = {kind: {"total": total} for kind, total in amounts.items()}
        body = {"resource_provider_generation": 0, "inventories": inventories}
        self._put(f"{path}/inventories", body)
        if traits:
            body = {"resource_provider_generation": 1, "traits": traits}
            self._put(f"{path}/traits", body)

    def _cell(self, node):
        cpus = set(range(node * CORES, (node + 1) * CORES))
        pages = objects.NUMAPagesTopology(
            size_kb=PAGE_KB, total=MEMORY_MB * 1024 // PAGE_KB, used=0, reserved=0
        )
        physnets = {f"perfvm_cell_{node}"} if self._counted else set()
        return objects.NUMACell(
            id=node,
            cpuset=set(),
            pcpuset=cpus,
            pinned_cpus=set(),
            cpu_usage=0,
            memory=MEMORY_MB,
            memory_usage=0,
            siblings=[{cpu} for cpu in cpus],
            mempages=[pages],
            socket=node,
            network_metadata=objects.NetworkMetadata(physnets=physnets, tunneled=False),
        )

    def _states(self, _context, providers, _spec):
        for provider in providers:
            if provider in self._names:
                yield self._state(provider, self._names[provider])

    def _state(self, provider, name):
        state = host_manager.HostState(name, name, str(uuid.uuid4()))
        state.uuid = provider
        state.numa_topology = self._topologies[name]
        state.cpu_allocation_ratio = state.ram_allocation_ratio = 1.0
        here = [self.free[name, node] for node in range(CELLS)]
        state.vcpus_total = CELLS * CORES
        state.vcpus_used = state.vcpus_total - sum(cpus for cpus, _ in here)
        state.total_usable_ram_mb = CELLS * MEMORY_MB
        state.free_ram_mb = sum(memory_mb for _, memory_mb in here)
        return state


def _cell_name(host, node):
    return f"{host}_perfvm_cell_{node}"


def fill(hosts, rng, frequencies):
    """Place VMs of mixed sizes until there is room for none; return what was placed.

    :param frequencies: {flavor: how often, as against the others}
    :returns: {flavor: how many}, and how many were refused though there was room
    """
    placed, needless, left = collections.Counter(), 0, dict(frequencies)
    while left:
        (flavor,) = rng.choices([*left], [*left.values()])
        if hosts.place(flavor):
            placed[flavor] += 1
        else:
            needless += hosts.has_room(flavor)
            del left[flavor]
    return placed, needless
