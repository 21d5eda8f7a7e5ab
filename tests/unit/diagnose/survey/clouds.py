# SPDX-License-Identifier: Apache-2.0
"""Clouds that know nothing of the project."""

import dataclasses

from nova_perfvm.facts.snapshot import Flavor, Inventory, ServerCell
from nova_perfvm.policy import loader
from tests.unit.facts.snapshot import clouds

PINNED = {"hw:cpu_policy": "dedicated"}
# Without slots: nobody has told Placement of any.
_PLAIN = dataclasses.replace(loader.load(), placement="none")


class PlainCloud(clouds.Cloud):
    """A cloud with flavors of its own, until a test adds others."""

    def __init__(self):
        super().__init__(_PLAIN)
        self.flavors = {}
        self.add_flavor("m1.small", 2, 4)

    def add_flavor(self, name, vcpus, memory_gb, specs=(), disk_gb=20):
        """Add a flavor."""
        self.flavors[name] = Flavor(
            id=name,
            name=name,
            vcpus=vcpus,
            memory_mb=memory_gb * 1024,
            disk_gb=disk_gb,
            extra_specs=dict(specs),
        )

    def add_host(self, name, *arguments, **options):
        """Add a host with disks."""
        super().add_host(name, *arguments, **options)
        self.change_inventories(name, DISK_GB=Inventory(4000, 4000))

    def add_open_host(self, name, shape="2x20"):
        """Add a host without CPU sets."""
        self.add_host(name, "open", shape)

    def add_mixed_host(self, name, dedicated, shared, shape="2x20"):
        """Add a host of both kinds of CPUs."""
        self.add_host(name, "dedicated", shape)
        self.change_inventories(
            name,
            PCPU=Inventory(dedicated, dedicated),
            VCPU=Inventory(shared, shared, allocation_ratio=4),
        )

    def add_pinned(self, name, host, flavor, first=0, node=0, **changes):
        """Add a VM that owns CPUs from the first on, on one NUMA node."""
        given = self.flavors[flavor]
        pins = {vcpu: first + vcpu for vcpu in range(given.vcpus)}
        cell = ServerCell(node, frozenset(pins), given.memory_mb, pins)
        changes = {"cells": (cell,), "pinned": True} | changes
        kind = "PCPU" if self.providers[host].total("PCPU") else "VCPU"
        resources = {kind: given.vcpus, "MEMORY_MB": given.memory_mb}
        self.add(name, host, flavor, resources, **changes)

    def add_shared(self, name, host, flavor="m1.small", **changes):
        """Add a VM that shares CPUs."""
        self.add_general(name, host, flavor, **changes)


def empty():
    """Return one without any VM: open hosts only, which is what Nova comes as."""
    cloud = PlainCloud()
    for number in range(3):
        cloud.add_open_host(f"h{number}", "2x16x2")
    return cloud


def shared_only():
    """Return one without pinned VMs, of two shapes."""
    cloud = PlainCloud()
    for number in range(4):
        name = f"h{number}"
        cloud.add_open_host(name, "2x24" if number else "1x64")
        for index in range(number):
            cloud.add_shared(f"{name}-{index}", name)
    return cloud


def pools():
    """Return one with pinned VMs of two sizes side by side, and mixed with others."""
    cloud = PlainCloud()
    specs = {**PINNED, "hw:cpu_thread_policy": "prefer", "hw:numa_nodes": "1"}
    more = {"hw:mem_page_size": "1048576", "hw:pci_numa_affinity_policy": "required"}
    cloud.add_flavor("db.20", 20, 128, specs | more)
    cloud.add_flavor("db.4", 4, 16, specs)
    for number in range(4):
        cloud.add_host(f"p{number}")
    cloud.add_open_host("o1")
    cloud.add_pinned("a", "p0", "db.20", image="image")
    cloud.add_pinned("b", "p0", "db.20", 20, 1, image="image")
    cloud.add_pinned("c", "p1", "db.20", image="image")
    cloud.add_pinned("d", "p1", "db.4", 20, 1)
    cloud.add_pinned("e", "p2", "db.4", 0, 0)
    cloud.add_shared("g", "o1")
    return cloud


def mixed():
    """Return one with pinned VMs of three sizes, none of which prevails."""
    cloud = PlainCloud()
    specs = {**PINNED, "hw:mem_page_size": "2MB"}
    for vcpus, memory_gb in ((16, 64), (8, 32), (4, 16), (2, 8)):
        cloud.add_flavor(f"c.{vcpus}", vcpus, memory_gb, specs)
    for number in range(2):
        name = f"h{number}"
        cloud.add_host(name)
        for vcpus, first, node in ((16, 0, 0), (4, 16, 0), (8, 20, 1), (8, 28, 1)):
            vm = f"{name}-{first}"
            cloud.add_pinned(vm, name, f"c.{vcpus}", first, node, image="image")
    cloud.add_pinned("few", "h1", "c.2", 36, 1)
    return cloud


def divided():
    """Return one whose hosts are divided by NUMA node."""
    cloud = PlainCloud()
    cloud.add_flavor("hpc", 16, 64, {**PINNED, "hw:emulator_threads_policy": "isolate"})
    for number in range(2):
        cloud.add_mixed_host(f"m{number}", 20, 20)
        cloud.add_pinned(f"a{number}", f"m{number}", "hpc")
        cloud.add_shared(f"g{number}", f"m{number}")
    return cloud


def threads():
    """Return one whose VMs are larger than the cores of a NUMA node."""
    cloud = PlainCloud()
    cloud.add_flavor("big", 40, 100, {**PINNED, "hw:cpu_thread_policy": "require"})
    cloud.add_host("h1", shape="2x20x2")
    cloud.add_pinned("a", "h1", "big")
    return cloud


def odd():
    """Return one whose flavors say what no policy can."""
    cloud = PlainCloud()
    specs = {
        **PINNED,
        "hw:cpu_thread_policy": "isolate",
        "hw:emulator_threads_policy": "isolate",
        "hw:mem_page_size": "any",
        "hw:numa_nodes": "2",
    }
    cloud.add_flavor("hp.40c.63g", 40, 63, specs, disk_gb=0)
    cloud.add_host("h1", shape="2x20x2")
    return cloud


ALL = (empty, shared_only, pools, mixed, divided, threads, odd)
