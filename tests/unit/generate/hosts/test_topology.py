# SPDX-License-Identifier: Apache-2.0
import testtools

from nova_perfvm.generate.hosts import Node, TopologyError, from_shape, make_topology
from nova_perfvm.policy import HostShape


class FromShapeTest(testtools.TestCase):
    def test_threads_are_numbered_as_linux_does(self):
        topology = from_shape(HostShape(2, 20, 2))
        first, second = topology.nodes
        self.assertEqual({*range(20), *range(40, 60)}, first.cpus)
        self.assertEqual({*range(20, 40), *range(60, 80)}, second.cpus)
        self.assertEqual((0, 40), first.cores[0])
        self.assertEqual((39, 79), second.cores[-1])

    def test_more_cpus_than_linux_has(self):
        error = self.assertRaises(TopologyError, from_shape, HostShape(9999, 9999))
        self.assertIn("65536", str(error))


class TopologyTest(testtools.TestCase):
    def test_uneven_nodes_have_no_shape_and_empty_ones_do_not_count(self):
        nodes = [Node(1, ((2,),)), Node(0, ((0,), (1,)), 512), Node(2, (), 512)]
        topology = make_topology(nodes, "here")
        self.assertIsNone(topology.shape)
        self.assertEqual("2 NUMA nodes of 2 + 1 cores", str(topology))
        # Of one node the memory is not known.
        self.assertIsNone(topology.memory_mb)
        self.assertEqual(2048, topology.with_memory(2).memory_mb)

    def test_refused(self):
        # It would take minutes to count each CPU among all.
        many = tuple((cpu,) for cpu in range(65536))
        for words, nodes in (
            ("0-65535 are listed twice", [Node(0, many), Node(1, many)]),
            ("no online CPU", []),
            ("no online CPU", [Node(0, ())]),
            ("1 are listed twice", [Node(0, ((0,), (1,))), Node(1, ((1,),))]),
        ):
            error = self.assertRaises(TopologyError, make_topology, nodes, "here")
            self.assertIn(words, str(error))
