# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools

import hypothesis
import testtools
from hypothesis import strategies as st

from nova_perfvm.facts.flavor_facts import server_facts
from nova_perfvm.facts.snapshot import ComputeHost, ServerCell, assume_cells, host_facts
from nova_perfvm.generate.hosts.cpus import divide_cpus
from nova_perfvm.generate.hosts.request import HostRequest
from nova_perfvm.generate.hosts.topology import from_shape
from nova_perfvm.policy import HostShape
from nova_perfvm.rules.slots import host_mode
from tests.unit.facts.snapshot.clouds import POLICY, Cloud
from tests.unit.rules.hosts import HP


def pinned(node, cpus):
    """Return a server that owns CPUs of one NUMA node."""
    cloud = Cloud()
    cloud.add_host("h")
    cell = ServerCell(node, frozenset(range(len(cpus))), 1024, dict(enumerate(cpus)))
    cloud.add_hp("a", "h", cells=(cell,))
    return cloud.servers["a"]


class CellsTest(testtools.TestCase):
    def counts(self, shape, pcpus, vcpus):
        cells = assume_cells(HostShape.parse(shape), pcpus, vcpus, 1000)
        return [(len(c.pcpuset), len(c.cpuset), len(c.siblings)) for c in cells]

    def test_modes(self):
        for given, expected in (
            (("2x20", 40, 0), [(20, 0, 0)] * 2),
            (("2x20", 0, 40), [(20, 20, 0)] * 2),
            # Each kind on its own NUMA node, however many are kept back.
            (("2x20", 19, 19), [(19, 0, 0), (0, 19, 0)]),
            (("4x20", 60, 20), [(20, 0, 0)] * 3 + [(0, 20, 0)]),
            # Both on each.
            (("2x20", 30, 10), [(15, 5, 0)] * 2),
            (("2x20x2", 80, 0), [(40, 0, 20)] * 2),
            # One thread per core on dedicated cells, both on those that are shared.
            (("2x20x2", 19, 38), [(19, 0, 0), (0, 38, 0)]),
            (("3x20x2", 20, 80), [(20, 0, 0)] + [(0, 40, 0)] * 2),
            # All threads on both.
            (("2x20x2", 40, 40), [(40, 0, 20), (0, 40, 0)]),
            (("2x20x2", 39, 39), [(39, 0, 0), (0, 39, 0)]),
            # Rather all cores of each cell than half of those of each.
            (("6x10x2", 30, 60), [(10, 0, 0)] * 3 + [(0, 20, 0)] * 3),
        ):
            self.assertEqual(expected, self.counts(*given), given)

    def test_what_host_config_makes_of_a_mixed_host(self):
        for shape, smt, nodes, reserve in itertools.product(
            ("2x20", "2x20x2", "4x20x2"), ("cores", "threads"), (1, 2), (0, 2)
        ):
            topology = from_shape(HostShape.parse(shape))
            if nodes == len(topology.nodes):
                continue
            request = HostRequest(
                POLICY, topology, "mixed", reserve=reserve, shared_nodes=nodes
            )
            cpus = divide_cpus(request, [dataclasses.replace(HP, smt=smt)])
            cells = assume_cells(
                HostShape.parse(shape), len(cpus.dedicated), len(cpus.shared), 1000
            )
            self.assertEqual(
                [
                    (len(node.cpus & cpus.dedicated), len(node.cpus & cpus.shared))
                    for node in topology.nodes
                ],
                [(len(cell.pcpuset), len(cell.cpuset)) for cell in cells],
            )

    def test_what_is_known_is_kept(self):
        # Even CPUs on node 0, odd ones on node 1, as on some machines.
        servers = [pinned(0, range(0, 40, 2))]
        cells = assume_cells(HostShape(2, 20), 40, 0, 1000, servers)
        self.assertEqual(set(range(0, 40, 2)), cells[0].pcpuset)
        self.assertEqual(20, len(cells[1].pcpuset))
        self.assertFalse(cells[0].pcpuset & cells[1].pcpuset)

    @hypothesis.given(
        st.integers(1, 8),
        st.integers(1, 8),
        st.integers(1, 2),
        st.integers(0, 200),
        st.integers(0, 200),
        st.sets(st.integers(0, 60), max_size=20),
    )
    def test_every_cpu_is_there_once(self, nodes, cores, threads, pcpus, vcpus, cpus):
        shape = HostShape(nodes, cores, threads)
        cells = assume_cells(shape, pcpus, vcpus, 1000, [pinned(0, sorted(cpus))])
        for name, total in (("pcpuset", pcpus or vcpus), ("cpuset", vcpus)):
            sets = [getattr(cell, name) for cell in cells]
            self.assertEqual(sum(map(len, sets)), len(frozenset().union(*sets)))
            if not cpus:
                self.assertEqual(total, sum(map(len, sets)))
        self.assertLessEqual(cpus, cells[0].pcpuset)


class CoresTest(testtools.TestCase):
    def test_cores_of_each_node(self):
        """Nova lists no siblings where no core has two threads."""
        for shape, pcpus, vcpus, siblings, expected in (
            ("2x20x2", 80, 0, True, (20, 20)),
            ("2x20", 40, 0, False, (20, 20)),
            ("2x20", 0, 40, False, (20, 20)),
            ("2x20", 30, 10, False, (20, 20)),
        ):
            cells = assume_cells(HostShape.parse(shape), pcpus, vcpus, 1000)
            host = ComputeHost(
                host="h", node="h", provider="p", service="s", cells=tuple(cells)
            )
            self.assertEqual(siblings, bool(cells[0].siblings), shape)
            self.assertEqual(expected, host.cores, (shape, pcpus, vcpus))


class FactsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        cloud = Cloud()
        cloud.add_host("h1")
        cloud.add_hp("a", "h1", 20, node=1)
        self.cloud = cloud.snapshot()

    def test_host(self):
        facts = host_facts(self.cloud, self.cloud.hosts[0])
        self.assertEqual("dedicated", host_mode(facts))
        self.assertEqual([0, 20], [len(cell.pinned_cpus) for cell in facts.cells])
        self.assertEqual([0, 65536], [cell.memory_usage_mb for cell in facts.cells])
        self.assertEqual((20, 1), (facts.vcpus_used, facts.num_instances))

    def test_server(self):
        (server,) = self.cloud.servers
        facts = server_facts(server)
        self.assertEqual(("high-performance", True), (facts.class_name, facts.pinned))
        self.assertEqual([(0, 20, 65536)], [cell[:3] for cell in facts.cells])
        self.assertTrue(facts.multiqueue)
        self.assertTrue(facts.volume_backed)
        for text, expected in (
            *(("small", -1), ("any", -3), ("2048", 2048), ("2MB", 2048)),
            *(("1GB", 1048576), ("huge", None)),
        ):
            specs = {"hw:mem_page_size": text}
            found = server_facts(dataclasses.replace(server, extra_specs=specs))
            self.assertEqual(expected, found.cells[0].page_size_kb, text)
