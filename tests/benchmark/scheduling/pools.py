# SPDX-License-Identifier: Apache-2.0
"""Hosts of a kind, and what runs on them."""

import dataclasses
import functools
import random

from nova import objects
from nova.virt import hardware

from nova_perfvm import constants as const
from nova_perfvm.policy import HostShape
from tests.benchmark.scheduling.flavors import HIGH, MIXED, flavor, sizes
from tests.unit.scheduler import states

MEMORY_MB = 512000
RESERVED_MB = 512
DISK_GB = 4000
# nova-compute's default for hosts whose CPUs are shared.
CPU_RATIO = 4.0
# As many general VMs as a shared host has CPUs for.
GENERAL_PER_HOST = 20
GENERAL_LARGE = "g.8c.16g"
HIGH_PER_HOST = 2


@dataclasses.dataclass(frozen=True)
class Pool:
    """Hosts alike.

    :ivar cpus: which of [compute]'s sets has all CPUs: ``dedicated``, ``shared``,
        or ``open`` where there is neither
    :ivar requests: which VMs are asked for
    :ivar schemes: what is compared; see :mod:`tests.benchmark.scheduling.arms`
    :ivar sizes: names of the flavors whose VMs fill NUMA nodes, where these count
    """

    name: str
    shape: str
    cpus: str
    requests: tuple
    schemes: tuple
    sizes: tuple = ()

    @property
    def size(self):
        """How many CPUs a host has."""
        return HostShape.parse(self.shape).cpus

    @property
    def offers_slots(self):
        """Whether its hosts are for high-performance VMs alone."""
        return self.cpus == "dedicated"


_SLOTS = ("stock", "filter", "slots")
_UNITS = ("stock", "filter", "units")
_SMALL = ("p.4c", "p.8c")
POOLS = {
    pool.name: pool
    for pool in (
        Pool("dedicated", "2x20", "dedicated", ("high-performance",), _SLOTS),
        Pool("shared", "2x20", "shared", ("general",), _SLOTS),
        Pool("no cpu sets", "2x20", "open", ("high-performance", "general"), _UNITS),
        Pool("SMT, two a host", "2x20x2", "dedicated", ("high-performance",), _SLOTS),
        Pool("30-CPU nodes", "2x30", "dedicated", ("high-performance",), _SLOTS),
    )
}
# Their NUMA nodes are taken by VMs of all sizes, or of the small ones.
MIXED_POOLS = {
    name: Pool(name, "2x20", "dedicated", (MIXED,), ("stock", "cells"), of)
    for name, of in {
        "4 to 20 vCPUs": (*_SMALL, "p.16c", "p.20c"),
        "4 and 8 vCPUs": _SMALL,
    }.items()
}


@dataclasses.dataclass(frozen=True)
class Guests:
    """The VMs of a host: names of flavors, in the order in which they came.

    :ivar nodes: the NUMA node of each pinned one; empty where Nova chooses
    """

    high: tuple = ()
    general: int = 0
    nodes: tuple = ()

    @property
    def flavors(self):
        """The name of each VM's flavor."""
        return (*self.high, *[GENERAL_LARGE] * self.general)


def fill(pool, hosts, taken, seed=20):
    """Return the guests of each host.

    :param taken: share of the places that are taken, from 0 to 1
    """
    draw = random.Random(seed)
    if pool.cpus == "open":
        flags = _chosen(draw, hosts, taken)
        return [_one_class(draw) if flag else Guests() for flag in flags]
    places = GENERAL_PER_HOST if pool.cpus == "shared" else HIGH_PER_HOST
    flags = _chosen(draw, hosts * places, taken)
    if pool.sizes:
        return [
            _divided(draw, pool.sizes, flags[n * places : (n + 1) * places])
            for n in range(hosts)
        ]
    counts = [sum(flags[n * places : (n + 1) * places]) for n in range(hosts)]
    if pool.cpus == "shared":
        return [Guests(general=count) for count in counts]
    return [Guests(high=_some(draw, count)) for count in counts]


def _chosen(draw, number, share):
    flags = [index < round(number * share) for index in range(number)]
    draw.shuffle(flags)
    return flags


def _some(draw, count):
    return tuple(sorted(draw.choices(sizes(HIGH), k=count)))


def _divided(draw, names, flags):
    """Return the guests of a host: NUMA nodes that are taken have none of 16 CPUs."""
    found = []
    for node, taken in enumerate(flags):
        free = 20
        while taken and free >= 16:
            name = draw.choice([n for n in names if flavor("stock", n).vcpus <= free])
            free -= flavor("stock", name).vcpus
            found.append((name, node))
    return Guests(tuple(n for n, _ in found), nodes=tuple(n for _, n in found))


def _one_class(draw):
    """Return the guests of a host that serves either class: three in four are full."""
    if draw.random() < 3 / 4:
        return Guests(high=_some(draw, HIGH_PER_HOST))
    return Guests(general=draw.randint(1, GENERAL_PER_HOST // 2))


@functools.cache
def topology(pool, guests):
    """Return a host's topology as JSON, the way nova-compute saves it."""
    every = set(range(pool.size))
    host = states.numa_topology(
        pool.shape,
        dedicated=() if pool.cpus == "shared" else None,
        shared=() if pool.cpus == "dedicated" else every,
        memory_mb=MEMORY_MB,
        mempages=[(4, MEMORY_MB // 2 * 256, 0, 0)],
    )
    for cell in host.cells:
        cell.network_metadata = _networks({cell.id} if pool.sizes else ())
        cell.socket = 0
    for index, name in enumerate(guests.high):
        wanted = hardware.numa_get_constraints(
            flavor("stock", name),
            objects.ImageMeta(properties=objects.ImageMetaProps()),
        )
        limits = objects.NUMATopologyLimits(
            cpu_allocation_ratio=1.0,
            ram_allocation_ratio=1.0,
            network_metadata=_networks(guests.nodes[index : index + 1]),
        )
        fit = hardware.numa_fit_instance_to_host(
            host, wanted, None, limits=limits, pci_requests=None, pci_stats=None
        )
        host = hardware.numa_usage_from_instance_numa(host, fit)
    return host._to_json()


def _networks(nodes):
    """Return the physical networks that stand for NUMA nodes."""
    names = {f"{const.CELL_PHYSNET}{node}" for node in nodes}
    return objects.NetworkMetadata(physnets=names, tunneled=False)
