# SPDX-License-Identifier: Apache-2.0
"""Hosts in random states and requests of random wishes, of Nova's own objects.

Wishes that contradict each other come too: Nova says which.
"""

import copy

from nova import exception, objects
from nova.pci import stats
from oslo_utils.fixture import uuidsentinel

from tests.unit.scheduler import states

SHAPES = ("1x8", "2x4", "2x10", "2x20", "2x10x2", "4x5", "4x4x2", "8x2")
DEVICE = {"vendor_id": "8086", "product_id": "1572"}
PHYSNETS = ("left", "right")


def maybe(rng, share=0.5):
    return rng.random() < share


def topology(rng):
    """Return the NUMA topology of a host that runs something."""
    shape = rng.choice(SHAPES)
    cpus = range(states.HostShape.parse(shape).cpus)
    split = rng.choice(("dedicated", "shared", "both", "both"))
    shared = {
        "dedicated": set(),
        "shared": set(cpus),
        "both": {cpu for cpu in cpus if cpu % 4 == 3},
    }[split]
    made = states.numa_topology(shape, dedicated=set(cpus) - shared, shared=shared)
    pages = mempages(rng)
    for cell in made.cells:
        # Mostly the same on all cells, as an operator reserves them.
        cell.mempages = mempages(rng) if maybe(rng, 0.3) else copy.deepcopy(pages)
        occupy(rng, cell)
        if maybe(rng, 0.3):
            cell.network_metadata = objects.NetworkMetadata(
                physnets={each for each in PHYSNETS if maybe(rng)},
                tunneled=maybe(rng),
            )
    return made


def paged_topology(rng):
    """Return that of a host whose nodes have pages of different sizes.

    Which size a VM gets then depends on the node that Nova tries first.
    """
    made = states.numa_topology("2x4")
    large = rng.sample(((2048,), (1048576,), (2048, 1048576)), len(made.cells))
    for cell, sizes in zip(made.cells, large, strict=True):
        cell.mempages = [
            objects.NUMAPagesTopology(
                size_kb=size_kb, total=(1 << 24) // size_kb, used=0, reserved=0
            )
            for size_kb in (4, *sizes)
        ]
    if maybe(rng, 0.7):
        full = rng.choice(made.cells)
        full.pin_cpus(set(full.pcpuset))
    return made


def mempages(rng):
    """Return the page pools of a cell."""
    pools = [(4, 1 << 22, rng.choice((0, 65536)))]
    pools += [(2048, rng.choice((0, 4096, 16384)), 0)] if maybe(rng) else []
    pools += [(1048576, rng.choice((0, 8, 64)), 0)] if maybe(rng) else []
    return [
        objects.NUMAPagesTopology(
            size_kb=size_kb, total=total, used=0, reserved=reserved
        )
        for size_kb, total, reserved in pools
    ]


def occupy(rng, cell):
    """Let a cell have VMs already, or none."""
    if maybe(rng, 0.4):
        return
    free = sorted(cell.pcpuset - cell.pinned_cpus)
    cell.pin_cpus(set(rng.sample(free, rng.randint(0, len(free)))))
    cell.cpu_usage = len(cell.pinned_cpus) + rng.randint(0, 2 * len(cell.cpuset))
    cell.memory_usage = rng.randrange(0, cell.memory + 1, 4096)
    for pages in cell.mempages:
        pages.used = rng.randint(0, pages.total)


def hosts(rng, topology=topology, count=4):
    """Return hosts of which some are alike, some nearly so.

    :param topology: makes that of a host
    """
    found = []
    pattern = topology(rng)
    for number in range(count):
        chance = rng.random()
        if chance < 0.3:
            pattern = topology(rng)
        own = copy.deepcopy(pattern)
        if 0.3 < chance < 0.5:
            occupy(rng, rng.choice(own.cells))
        host = states.host_state(f"host{number}", own)
        if maybe(rng, 0.05):
            host.numa_topology = None
        host.cpu_allocation_ratio = rng.choice((1.0, 1.0, 4.0))
        host.ram_allocation_ratio = rng.choice((1.0, 1.0, 1.5))
        host.pci_stats = stats.PciDeviceStats(own, pools(rng, own))
        host.allocation_candidates = [
            {"allocations": {}, "mappings": {"": [host.uuid], "pci-0": [uuid]}}
            for uuid in rng.sample(
                (uuidsentinel.card_a, uuidsentinel.card_b), rng.randint(0, 2)
            )
        ] or host.allocation_candidates[: rng.randint(0, 8)]
        found.append(host)
    return found


def pools(rng, of):
    """Return pools of PCI devices on some cells."""
    return objects.PciDevicePoolList(
        objects=[pool(cell.id, rng.randint(0, 2)) for cell in of.cells if maybe(rng)]
    )


def pool(cell_id, count):
    """Return a pool of so many PCI devices on a cell."""
    return objects.PciDevicePool(
        numa_node=cell_id, tags={"dev_type": "type-PCI"}, count=count, **DEVICE
    )


def wishes(rng):
    """Return vCPUs, MB and extra specs that somebody may have written."""
    vcpus = rng.choice((1, 2, 2, 4, 4, 8, 10, 20))
    specs = {}
    if maybe(rng, 0.8):
        specs["hw:numa_nodes"] = str(rng.choice((1, 1, 2, 4)))
    if maybe(rng, 0.7):
        specs["hw:cpu_policy"] = rng.choice(("dedicated", "dedicated", "mixed"))
        if specs["hw:cpu_policy"] == "mixed":
            specs["hw:cpu_dedicated_mask"] = f"0-{max(vcpus // 2 - 1, 0)}"
        elif maybe(rng):
            policies = ("prefer", "prefer", "isolate", "require")
            specs["hw:cpu_thread_policy"] = rng.choice(policies)
        if maybe(rng, 0.4):
            policies = ("isolate", "share")
            specs["hw:emulator_threads_policy"] = rng.choice(policies)
    if maybe(rng, 0.4):
        sizes = ("small", "large", "large", "any", "2MB", "1048576", "1GB")
        specs["hw:mem_page_size"] = rng.choice(sizes)
    if maybe(rng, 0.1):
        specs |= {"hw:numa_nodes": "2", "hw:numa_cpus.0": "0"}
        specs["hw:numa_cpus.1"] = f"1-{max(vcpus - 1, 1)}"
        specs |= {"hw:numa_mem.0": "1024", "hw:numa_mem.1": "3072"}
        return vcpus, 4096, specs
    return vcpus, rng.choice((1024, 4096, 4096, 65536, 131072)), specs


def paged_wishes(rng):
    """Return wishes of a VM of one node that says which pages it takes."""
    specs = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"}
    specs["hw:mem_page_size"] = rng.choice(("large", "large", "any", "2MB"))
    return 2, 4096, specs


# What a request and the hosts before it are made by.
SCENES = ((wishes, topology), (paged_wishes, paged_topology))


def request(rng, wishes=wishes):
    """Return a RequestSpec, of wishes that Nova takes together."""
    while True:
        vcpus, memory_mb, specs = wishes(rng)
        image = {"hw_cpu_thread_policy": "require"} if maybe(rng, 0.05) else {}
        hints = {"_nova_check_type": ["rebuild"]} if maybe(rng, 0.05) else {}
        try:
            spec = states.request_spec(
                vcpus=vcpus,
                memory_mb=memory_mb,
                extra_specs=specs,
                image_props=image,
                hints=hints,
            )
        except (exception.NovaException, ValueError):
            continue
        if maybe(rng, 0.25):
            spec.pci_requests = objects.InstancePCIRequests(requests=[device(rng)])
        if maybe(rng, 0.3):
            spec.network_metadata = objects.NetworkMetadata(
                physnets={each for each in PHYSNETS if maybe(rng, 0.3)},
                tunneled=maybe(rng, 0.3),
            )
        return spec


def device(rng):
    """Return a wish for a PCI device."""
    policies = ("required", "preferred", "legacy", "socket")
    return objects.InstancePCIRequest(
        count=1,
        alias_name="card",
        spec=[DEVICE],
        numa_policy=rng.choice(policies),
        request_id=uuidsentinel.pci_request,
    )
