# SPDX-License-Identifier: Apache-2.0
"""NUMA nodes of requests on those of hosts."""

import collections
import copy
import dataclasses
import itertools
import logging
import random

import fixtures
import testtools
from hypothesis import given
from hypothesis import strategies as st
from nova import exception
from nova.scheduler.filters.numa_topology_filter import NUMATopologyFilter
from nova.virt import hardware

from nova_perfvm import constants as const
from nova_perfvm.cloud import nova_database
from nova_perfvm.diagnose.nova_filters import FILTERS, FilterCase
from nova_perfvm.diagnose.nova_filters.numa import match_cells
from nova_perfvm.diagnose.verdicts import judge, settings_for
from nova_perfvm.facts import HostFacts, NUMACell, RequestCell, RequestFacts
from nova_perfvm.facts.demand import Demand, Request, RequestError
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.requests import request_for
from nova_perfvm.facts.snapshot import (
    INVENTORY_FILE,
    NOVA_DATABASE,
    ComputeHost,
    Flavor,
    Inventory,
    Provider,
    Snapshot,
)
from nova_perfvm.policy import HostShape
from nova_perfvm.scheduler import adapters
from tests.unit.facts.snapshot.clouds import POLICY
from tests.unit.scheduler import states

# No rule looks at hosts that have no label.
ELSEWHERE = dataclasses.replace(POLICY, managed_hosts="labelled")

# 8 cells on 16 have 500 million orders: who tries them all does not end.
LIMIT_S = 120

# Free CPUs of either kind, of a host's cell or for one of a request.
SIZES = st.tuples(st.integers(0, 3), st.integers(0, 3))


def refused(wanted, offered):
    """Return whether NUMATopologyFilter would find no cells for a request.

    :param wanted: (vCPUs, pCPUs) of each cell of the request
    :param offered: (shared, free dedicated CPUs) of each cell of the host
    """
    cells = []
    for index, (shared, own) in enumerate(offered):
        first = 1000 * index
        cpuset = frozenset(range(first, first + shared))
        pcpuset = frozenset(range(first + 500, first + 500 + own + 1))
        # One CPU of each is taken.
        pinned = frozenset({first + 500})
        cells.append(NUMACell(index, cpuset, pcpuset, pinned, 1024, 0))
    request = Request(
        RequestFacts(
            flavor="pinned",
            class_name=None,
            vcpus=sum(map(sum, wanted)),
            memory_mb=1024,
            cells=tuple(RequestCell(*cell, 128) for cell in wanted),
        ),
        Demand(groups=()),
    )
    view = HostView(
        ComputeHost("h", "h", "p", "s", cells_source=INVENTORY_FILE),
        HostFacts("h", "h", cells),
    )
    found = judge(ELSEWHERE, request, view, settings_for(ELSEWHERE))
    return const.NOVA_NUMA_TOPOLOGY in [reason.code for reason in found.reasons]


def drawn_topology(rng):
    """Return a host's topology with some CPUs pinned and some memory in use."""
    shape = rng.choice(["1x4", "2x4", "2x2x2", "2x4x2"])
    cpus = range(HostShape.parse(shape).cpus)
    kind = rng.choice(["dedicated", "open", "mixed"])
    # Facts leave out reserved pages, which Nova counts for VMs that share memory.
    pools = [(4, 2**18 + 1024, rng.choice([0, 2**17]), rng.choice([0, 1024]))]
    if rng.random() < 0.5:
        pools.append((2048, 512, rng.choice([0, 256, 400]), 0))
    topology = states.numa_topology(
        shape,
        dedicated=cpus if kind != "mixed" else [cpu for cpu in cpus if cpu % 4],
        shared={"dedicated": (), "open": cpus, "mixed": cpus[::4]}[kind],
        memory_mb=4096,
        mempages=pools if rng.random() < 0.7 else (),
    )
    for cell in topology.cells:
        share = rng.choice([0, 0, 0.3, 0.7])
        cell.pinned_cpus = {c for c in cell.pcpuset if rng.random() < share}
        cell.memory_usage = rng.choice([0, 512, 1024])
    return topology


def drawn_request(rng):
    """Return the RequestSpec of a VM that pins CPUs or asks for pages or NUMA nodes."""
    specs = {}
    if rng.random() < 0.8:
        specs["hw:cpu_policy"] = "dedicated"
        if threads := rng.choice([None, None, "require", "isolate", "prefer"]):
            specs["hw:cpu_thread_policy"] = threads
        if emulator := rng.choice([None, None, "isolate", "share"]):
            specs["hw:emulator_threads_policy"] = emulator
    if nodes := rng.choice([None, "1", "2"]):
        specs["hw:numa_nodes"] = nodes
    if pages := rng.choice([None, None, "small", "large", "any", "2MB", "1GB"]):
        specs["hw:mem_page_size"] = pages
    vcpus, memory_mb = rng.choice([2, 4, 6]), rng.choice([512, 1024, 2048, 2050, 4096])
    return states.request_spec("f", vcpus, memory_mb, specs)


class AsNovaTest(testtools.TestCase):
    def test_cells_of_many_hosts(self):
        """numa_fit_instance_to_host itself, without allocation ratios."""
        rng = random.Random(29)
        found = collections.Counter()
        for number in range(1500):
            topology, spec = drawn_topology(rng), drawn_request(rng)
            if spec.numa_topology is None:
                continue
            cells = adapters.host_facts(states.host_state(topology=topology)).cells
            ours = match_cells(adapters.request_facts(spec), cells, {})
            asked = copy.deepcopy(spec.numa_topology)
            theirs = hardware.numa_fit_instance_to_host(
                topology, asked, provider_mapping=None
            )
            case = number, topology, spec.flavor.extra_specs, spec.flavor.vcpus
            self.assertEqual(theirs is None, ours is None, case)
            policy = spec.flavor.extra_specs.get("hw:cpu_thread_policy")
            found[policy, theirs is None] += 1
        for policy in (None, "prefer", "isolate", "require"):
            for refused in (True, False):
                self.assertGreater(found[policy, refused], 5, (policy, refused))


# Of a flavor: with CPUs of its own or without, and all that NUMA nodes go by.
KEYS = {
    "hw:cpu_policy": ["dedicated", None],
    "hw:numa_nodes": [None, "1", "2"],
    "hw:mem_page_size": [None, None, "small", "large", "any", "2048", "1GB"],
    "hw:emulator_threads_policy": [None, None, None, "isolate", "share"],
    "hw:cpu_thread_policy": [None] * 4 + ["prefer", "isolate", "require"],
    "trait:HW_CPU_HYPERTHREADING": [None] * 8 + ["required", "forbidden"],
    "hw:pmem": [None] * 8 + ["6GB"],
    "perfvm:class": [None, "general"],
}


class AsFilterTest(testtools.TestCase):
    """NUMATopologyFilter itself, on what a snapshot has of the same hosts."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger(level=logging.CRITICAL))

    def test_hosts_flavors_and_ratios(self):
        rng = random.Random(5)
        found = collections.Counter()
        for number in range(2500):
            topology, ratios = self.topology(rng), self.ratios(rng)
            specs = {k: rng.choice(values) for k, values in KEYS.items()}
            specs = {k: value for k, value in specs.items() if value is not None}
            vcpus, memory_mb = rng.choice([1, 2, 4, 6]), rng.choice([512, 1024, 2050])
            flavor = Flavor("f", "f", vcpus, memory_mb, 0, specs)
            try:
                spec = states.request_spec("f", vcpus, memory_mb, specs)
            except exception.NovaException:
                error = RequestError
                self.assertRaises(error, request_for, flavor, volume_backed=True)
                found["nova-api"] += 1
                continue
            state = states.host_state(topology=topology)
            state.cpu_allocation_ratio = ratios["VCPU"]
            state.ram_allocation_ratio = ratios["MEMORY_MB"]
            passes = NUMATopologyFilter().host_passes(copy.deepcopy(state), spec)
            request = request_for(flavor, volume_backed=True)
            case = FilterCase(ELSEWHERE, request, self.view(topology, ratios))
            reasons = list(FILTERS["NUMATopologyFilter"](case))
            seen = number, flavor, ratios, topology
            self.assertEqual(passes, not reasons, seen)
            kind = "pinned" if "hw:cpu_policy" in specs else "shared"
            found[kind, "hw:mem_page_size" in specs, passes] += 1
        self.assertGreater(found["nova-api"], 100)
        for kind in itertools.product(("pinned", "shared"), *[(True, False)] * 2):
            self.assertGreater(found[kind], 15, (kind, found))

    def topology(self, rng):
        """Return a topology with VMs that share CPUs, or nodes without memory."""
        found = drawn_topology(rng)
        for cell in found.cells:
            cell.cpu_usage = rng.choice([0, 0, 2, 6])
            for pool in cell.mempages:
                # Those reserved for the host count for VMs that share memory alone.
                pool.total, pool.reserved = pool.total - pool.reserved, 0
            if rng.random() < 0.1:
                cell.memory, cell.memory_usage, cell.mempages = 0, 0, []
        return found

    def ratios(self, rng):
        memory, cpus = rng.choice([0.9, 1.0, 1.5]), rng.choice([1.0, 1.0, 2.0, 16.0])
        return {"MEMORY_MB": memory, "VCPU": cpus}

    def view(self, topology, ratios):
        cells = tuple(nova_database.cells_of(topology._to_json()))
        host = ComputeHost("h", "h", "p", "s", cells=cells, cells_source=NOVA_DATABASE)
        counted = {k: Inventory(1, 1, allocation_ratio=v) for k, v in ratios.items()}
        root = Provider("p", "h", 1, counted, root="p")
        taken = Snapshot("2026-01-01T00:00:00+00:00", (host,), (root,))
        return views_of(taken)[0]


class CellsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.Timeout(LIMIT_S, gentle=True))

    def test_eight_cells_on_sixteen(self):
        # Seven fit, on whichever cells: only every order shows that one never does.
        self.assertTrue(refused([(0, 2)] * 8, [(0, 2)] * 7 + [(0, 1)] * 9))
        self.assertFalse(refused([(0, 2)] * 8, [(0, 1)] * 8 + [(0, 2)] * 8))
        # The first takes what the last needs, and gives it back.
        wanted = [(0, size) for size in range(1, 9)]
        self.assertFalse(refused(wanted, [(0, size) for size in range(8, 0, -1)]))
        self.assertTrue(refused(wanted, [(0, 7 - n // 2) for n in range(16)]))

    @given(st.lists(SIZES, min_size=1, max_size=4), st.lists(SIZES, max_size=5))
    def test_as_trying_every_order(self, wanted, offered):
        expected = not any(
            all(v <= shared and p <= own for (v, p), (shared, own) in pairs)
            for pairs in (
                tuple(zip(wanted, chosen, strict=True))
                for chosen in itertools.permutations(offered, len(wanted))
            )
        )
        self.assertEqual(expected, refused(wanted, offered))
