# SPDX-License-Identifier: Apache-2.0
"""Clouds of pinned VMs in the shape of production clouds, made by chance.

Hosts have two NUMA nodes of 44 CPUs; VMs have 2 to 44 vCPUs, each inside one node, and
many are in anti-affinity groups.  Nodes are filled, then VMs leave by chance until 85
to 95 % of the CPUs are in use: so the free CPUs are scattered as by years of use.
"""

import dataclasses
import itertools
import random

from nova_perfvm import constants as const
from nova_perfvm.facts.children import cell_name, child_uuid
from nova_perfvm.facts.snapshot import (
    INVENTORY_FILE,
    Aggregate,
    HostCell,
    Inventory,
    Provider,
    ServerCell,
)
from nova_perfvm.policy import loader
from tests.unit.facts.snapshot import clouds

NODES, CPUS = 2, 44
# GiB of a host, and of a VM for each vCPU.
MEMORY_GB, GB_PER_VCPU = 704, 4
# Frequencies of sizes: many small VMs, or most of them half a node and more.
SMALL = {2: 10, 4: 24, 8: 26, 12: 10, 16: 14, 22: 6, 32: 6, 44: 4}
LARGE = {2: 2, 4: 6, 8: 8, 16: 12, 22: 14, 32: 22, 44: 36}
# The share of CPUs in use; that of VMs in groups, and how many VMs a group has.
FILL, GROUPED, GROUP = (0.85, 0.95), 0.3, (2, 6)

CELLS = tuple(
    HostCell(
        id=node,
        cpuset=frozenset(),
        pcpuset=frozenset(range(node * CPUS, (node + 1) * CPUS)),
        memory_mb=MEMORY_GB * 1024 // NODES,
    )
    for node in range(NODES)
)
INVENTORIES = [
    {
        const.RC_CELL_CPU: Inventory(CPUS, CPUS),
        const.RC_CELL_MEMORY: Inventory(cell.memory_mb, cell.memory_mb),
    }
    for cell in CELLS
]

_CLASS = """
  pinned-{0}:
    vcpus: {0}
    cpu_policy: dedicated
    numa_nodes: 1
    exclusive: none
    vif_multiqueue: true
    disk: {{source: volume, volume_type: nvme}}
    flavors: {{name: "p.{{vcpus}}c", memory_gb: [{1}], root_gb: 0}}
"""


def policy():
    """Return a policy with a class for each size."""
    sizes = sorted({*SMALL, *LARGE})
    text = 'schema_version: "1.0"\nhost_shape: 2x44\nplacement: cells\nclasses:'
    text += "".join(_CLASS.format(n, n * GB_PER_VCPU) for n in sizes)
    return loader.parse(f"{text}\n  general: {{default: true}}\n")


def vms_of(hosts, rng, sizes, fill=None):
    """Return VMs as (host, NUMA node, first CPU, vCPUs)."""
    vms = []
    for host, node in itertools.product(range(hosts), range(NODES)):
        first = node * CPUS
        for vcpus in _filling(rng, sizes):
            vms.append((f"h{host}", node, first, vcpus))
            first += vcpus
    rng.shuffle(vms)
    used = sum(vm[3] for vm in vms)
    most = (fill or rng.uniform(*FILL)) * hosts * NODES * CPUS
    while used > most:
        used -= vms.pop()[3]
    return vms


def snapshot(hosts, seed, sizes=SMALL, fill=None):
    """Return the snapshot of a cloud.

    :param sizes: frequencies of vCPUs
    :param fill: the share of CPUs in use; None for one by chance
    """
    rng = random.Random(seed)
    cloud = Cloud(policy())
    for host in range(hosts):
        cloud.add_enrolled(f"h{host}")
    grouped = []
    for number, vm in enumerate(vms_of(hosts, rng, sizes, fill)):
        cloud.add_vm(f"vm{number}", *vm)
        if rng.random() < GROUPED:
            grouped.append((f"vm{number}", vm[0]))
    while grouped:
        count, members, taken = rng.randint(*GROUP), [], set()
        for name, host in grouped[: 2 * GROUP[1]]:
            if len(members) < count and host not in taken:
                members.append((name, host))
                taken.add(host)
        cloud.add_group("anti-affinity", *(name for name, _ in members))
        grouped = [one for one in grouped if one not in members]
    return cloud.snapshot()


class Cloud(clouds.Cloud):
    """A cloud of enrolled hosts, whose NUMA nodes are known."""

    def add_enrolled(self, name):
        """Add a host with a child provider for each NUMA node."""
        self.add_host(name, "dedicated", f"{NODES}x{CPUS}", MEMORY_GB)
        trait = frozenset({const.TRAIT_CELLS})
        self.change_provider(name, traits=trait, aggregates=frozenset({"cells"}))
        for cell in CELLS:
            child = cell_name(name, cell.id)
            self.providers[child] = Provider(
                uuid=child_uuid(f"p-{name}", child),
                name=child,
                generation=1,
                inventories=INVENTORIES[cell.id],
                traits=trait,
                parent=f"p-{name}",
                root=f"p-{name}",
            )

    def add_vm(self, name, host, node, first, vcpus):
        """Add a VM that owns CPUs from the first on."""
        pins = {vcpu: first + vcpu for vcpu in range(vcpus)}
        memory_mb = vcpus * GB_PER_VCPU * 1024
        cell = ServerCell(node, frozenset(pins), memory_mb, pins)
        self.add(name, host, f"p.{vcpus}c", {}, cells=(cell,), pinned=True)
        held = {const.RC_CELL_CPU: vcpus, const.RC_CELL_MEMORY: memory_mb}
        self.allocate(f"i-{name}", cell_name(host, node), held)

    def snapshot(self):
        """Return the snapshot, with the aggregate of enrolled hosts."""
        metadata = {f"trait:{const.TRAIT_CELLS}": "required"}
        hosts = frozenset(self.hosts)
        aggregate = Aggregate(1, "cells", "perfvm-cells", metadata, hosts)
        self.parts["aggregates"] = (aggregate,)
        return super().snapshot()

    def _with_cells(self, host):
        return dataclasses.replace(host, cells=CELLS, cells_source=INVENTORY_FILE)


def _filling(rng, sizes):
    """Return vCPUs of VMs that fill a node."""
    left, found = CPUS, []
    while fitting := [size for size in sizes if size <= left]:
        (size,) = rng.choices(fitting, [sizes[size] for size in fitting])
        found.append(size)
        left -= size
    return found
