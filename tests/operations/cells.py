# SPDX-License-Identifier: Apache-2.0
"""``placement: cells`` under random operations, and Nova by itself beside it.

VMs of 4, 8, 16 and 20 vCPUs, and of 24 over two NUMA nodes, share hosts of two.  After
each step a VM has to be where Placement has it: on these NUMA nodes, with that memory.
An operation is done each minute: nova-compute has counted what went before.
"""

import collections

import yaml
from nova.scheduler.filters.numa_topology_filter import NUMATopologyFilter

from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.cloud import converge, nova_database
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import HostShape, loader
from nova_perfvm.scheduler.filters import PerfVMFilter
from nova_perfvm.scheduler.numa_filter import PerfVMNUMATopologyFilter
from tests.operations import case, clouds, steps, verdict
from tests.operations.offers import Offers
from tests.operations.verdict import Host

# GiB of memory that VMs of so many vCPUs have.  Three of the largest are more than a
# NUMA node has.
SIZES = {4: (16, 96), 8: (32,), 16: (64,), 20: (80,), 24: (96,)}
# Over how many NUMA nodes VMs of so many vCPUs are split.
NODES = dict.fromkeys(SIZES, 1) | {24: 2}
# The smaller a VM, the more of them.
FREQUENCIES = {
    "hp.4c.16g": 4,
    "hp.8c.32g": 3,
    "hp.16c.64g": 2,
    "hp.20c.80g": 2,
    "hp.4c.96g": 1,
}
SPLIT = {"hp.24c.96g": 1}
CPU, MEMORY = "CUSTOM_PERFVM_CELL_CPU", "CUSTOM_PERFVM_CELL_MEMORY_MB"
AT_ONCE = steps.Steps.boot_at_once.__name__


class CellsSteps(steps.Steps):
    """The same, and what takes several NUMA nodes of one host at a time."""

    def flavor(self, start="", but=None):
        found = FREQUENCIES | SPLIT
        names = [n for n in found if not but or n != but.flavor]
        (name,) = self.rng.choices(names, [found[n] for n in names])
        return name

    def boot_several_on_host(self):
        count = self.rng.choice((2, 3))
        return self.boot(self.flavor(), count=count, host=self.host())


# After these nothing is left for nova-compute to count later.
COUNTED_AT_ONCE = {
    kind.__name__
    for kind in (
        steps.Steps.boot_high,
        steps.Steps.boot_on_named_host,
        steps.Steps.boot_several,
        CellsSteps.boot_several_on_host,
        steps.Steps.rebuild,
        steps.Steps.stop_or_start,
        steps.Steps.run_periodics,
    )
}
# What is done; the rest is of general VMs, or of hosts that nobody is asked about, or
# of VMs that do not leave their hosts when they are shelved.
WEIGHTS = {CellsSteps.boot_several_on_host: 4} | {
    kind: weight
    for kind, weight in steps.WEIGHTS.items()
    if kind
    not in {
        steps.Steps.boot_general,
        steps.Steps.offload,
        steps.Steps.boot_on_forced_host,
        steps.Steps.live_migrate_forced,
        steps.Steps.evacuate_forced,
    }
}


def document(sizes):
    """Return a policy of a pinned class for each number of vCPUs."""
    found = loader.load().as_document() | {"placement": "cells"}
    pinned = found["classes"].pop(clouds.PINNED_CLASS)
    found["classes"] |= {
        f"of-{vcpus}": pinned
        | {
            "vcpus": vcpus,
            "numa_nodes": NODES[vcpus],
            "exclusive": "none",
            "max_per_host": None,
            "flavors": {
                "name": "hp.{vcpus}c.{memory_gb}g",
                "memory_gb": list(memory_gb),
                "root_gb": 0,
            },
        }
        for vcpus, memory_gb in sizes.items()
    }
    return found


class CellsCloud(clouds.Cloud):
    """Dedicated hosts whose NUMA nodes Placement knows."""

    PLACEMENT = "cells"
    FITTING = (PerfVMFilter, PerfVMNUMATopologyFilter)
    HOSTS = tuple(
        Host(f"dedicated{n}", "dedicated", HostShape.parse("2x20")) for n in (1, 2, 3)
    )

    def setUp(self):
        super().setUp()
        self.most, self.sizes = 10, NODES
        self.offers = self.useFixture(Offers(*self.FITTING))

    def _load(self):
        text = yaml.dump(document(SIZES), Dumper=_WithoutAliases)
        self._path.write_text(text, encoding="utf-8")
        self.policy = loader.load(self._path)

    def create_flavors(self, *_names):
        for flavor in generate_flavors(self.policy):
            if flavor.name.startswith("hp."):
                specs = dict(flavor.extra_specs)
                self.create_flavor(flavor.name, flavor.vcpus, flavor.memory_mb, specs)
                self.flavors.append(flavor.name)

    def create_flavor(self, name, vcpus, memory_mb, specs):
        self.cloud.create_flavor(name, vcpus, memory_mb, 0, specs)

    def start(self, host):
        shape = str(host.shape)
        self.cloud.start_host(
            host.name,
            shape,
            dedicated=f"0-{host.shape.cpus - 1}",
            memory_gb=host.memory_gb,
            named=True,
        )
        self.enroll(host.name)

    def enroll(self, name):
        def planner(view):
            known = nova_database.compute_nodes([])
            seen = nova_database.with_cells(view.cloud, known)
            return plan_enroll(self.policy, view_of(seen, name))

        converge.change_host(self.api, name, planner)

    def new_judge(self):
        return CellsJudge(self.cloud, self.hosts, counted=True)

    def changes(self):
        return []


class StockCloud(CellsCloud):
    """The same as Nova is without this project."""

    FILTER = False
    FITTING = (NUMATopologyFilter,)

    def create_flavor(self, name, vcpus, memory_mb, specs):
        pinned = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": str(NODES[vcpus])}
        super().create_flavor(name, vcpus, memory_mb, pinned)

    def enroll(self, name):
        pass

    def new_judge(self):
        return CellsJudge(self.cloud, self.hosts, counted=False)


class CellsJudge(verdict.Judge):
    """Compares the NUMA nodes of guests with those that Placement has.

    :param counted: whether Placement has any
    """

    def __init__(self, cloud, hosts, counted):
        super().__init__(cloud, hosts, 0)
        self._counted = counted

    def book_complaints(self, down):
        yield from super().book_complaints(down)
        if self._counted:
            yield from self._sums(down)

    def has_room(self, flavor):
        """Return whether NUMA nodes have room for a VM, by what guests have."""
        _, vcpus, memory_gb = flavor.split(".")
        nodes = NODES[int(vcpus[:-1])]
        wanted = int(vcpus[:-1]) // nodes, int(memory_gb[:-1]) * 1024 // nodes
        room = collections.Counter(
            name.partition("_perfvm_")[0]
            for name, (cpus, memory_mb) in self.free().items()
            if cpus >= wanted[0] and memory_mb >= wanted[1]
        )
        return any(count >= nodes for count in room.values())

    def free(self):
        """Return the CPUs and the memory of each NUMA node that no guest has."""
        left = self._capacities() - self._taken(self.guests)
        return {
            name: (left[name, CPU], left[name, MEMORY])
            for name, kind in self._capacities()
            if kind == CPU
        }

    def _capacities(self):
        """Return the CPUs and the memory of each NUMA node."""
        return collections.Counter(
            {
                (_cell(host.name, node), kind): amount
                for host in self._hosts.values()
                for node in range(host.shape.cells)
                for kind, amount in (
                    (CPU, host.shape.cores),
                    (MEMORY, host.memory_gb * 1024 // host.shape.cells),
                )
            }
        )

    def _taken(self, guests):
        """Count the CPUs and the memory of NUMA nodes that guests have."""
        taken = collections.Counter()
        for guest in guests:
            for node, cpus in self._nodes(guest).items():
                taken[_cell(guest.host, node), CPU] += cpus
            for node in guest.nodes:
                share = guest.memory_mb // len(guest.nodes)
                taken[_cell(guest.host, node), MEMORY] += share
        return taken

    def _lacks(self, server, host, has):
        nodes = {
            node
            for guest in self.guests
            if (guest.host, guest.id) == (host, server.id)
            for node in self._nodes(guest)
        }
        expected = {host: {"PCPU": server.vcpus, "MEMORY_MB": server.memory_mb}}
        for node in nodes if self._counted else ():
            expected[_cell(host, node)] = {
                CPU: server.vcpus // len(nodes),
                MEMORY: server.memory_mb // len(nodes),
            }
        return None if has == expected else f"it should be {expected}"

    def _sums(self, down):
        """Compare what guests have of each NUMA node with what is allocated."""
        taken, held = self._taken(self._alive(down)), collections.Counter()
        for has in verdict.books().held.values():
            for provider, resources in has.items():
                held.update({(provider, name): n for name, n in resources.items()})
        known = verdict.capacities()
        for what, amount in self._capacities().items():
            if amount != (has := known.get(what)):
                yield f"there are {amount} of {what}, and Placement has {has}"
        for what in taken.keys() | {key for key in held if key[1] in {CPU, MEMORY}}:
            up = what[0].partition("_perfvm_")[0] not in down
            if up and taken[what] != held[what]:
                yield f"guests have {taken[what]} of {what}, allocated: {held[what]}"

    def _nodes(self, guest):
        """Count the CPUs that a guest has of each NUMA node."""
        cores = self._hosts[guest.host].shape.cores
        return collections.Counter(cpu // cores for cpu in guest.cpus)


class CellsRun(case.Run):
    """A run on either cloud; offers in vain are a mistake where Placement counts.

    Those to servers that are created at the same time are not: each is offered what
    another one is about to take.

    :ivar in_vain: {whether at once: how many}
    """

    def _prepare(self):
        self.steps = CellsSteps(self.test, self.rng, self._judge)
        self.weights = dict(WEIGHTS)
        self.to_be_refused = set()
        self.in_vain = collections.Counter()
        self._known = 0

    def _weights(self):
        """Let each operation be tried the less, the more often it was done."""
        return {
            kind: weight / (1 + self.done[kind.__name__]) ** 2
            for kind, weight in super()._weights().items()
        }

    def _check(self):
        super()._check()
        self.both += len({len(guest.pins) for guest in self._judge.guests}) > 1
        offers = self.test.offers
        found = offers.refused[self._known :]
        self._known = len(offers.refused)
        at_once = f" {AT_ONCE}:" in self.last
        self.in_vain[at_once] += len(found)
        if self.test.FILTER:
            self.test.assertEqual([], [] if at_once else found)
            self.test.assertEqual([], offers.failed)
        if not any(f" {name}:" in self.last for name in COUNTED_AT_ONCE):
            self.test.cloud.run_periodics()

    @property
    def last(self):
        """What was done last, and to what."""
        return self._last[-1] if self._last else ""

    def _summary(self):
        super()._summary()
        offers = self.test.offers
        self.test.tell(
            f"seed {self.seed}, {(self.done + self.refused).total()} operations: "
            f"{offers.offered} hosts offered, {self.in_vain[False]} in vain, and "
            f"{self.in_vain[True]} to creates at once; {offers.claims} claims on "
            f"hosts, {len(offers.failed)} failed"
        )


class _WithoutAliases(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


def _cell(host, node):
    return f"{host}_perfvm_cell_{node}"
