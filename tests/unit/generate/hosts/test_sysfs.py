# SPDX-License-Identifier: Apache-2.0
import pathlib

import fixtures
import testtools

from nova_perfvm.generate.hosts import TopologyError, sysfs


class SysfsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def put(self, path, text):
        target = self.root / "devices/system" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text + "\n")

    def put_cpus(self, online, siblings):
        self.put("cpu/online", online)
        for cpu, text in siblings.items():
            self.put(f"cpu/cpu{cpu}/topology/thread_siblings_list", text)

    def put_node(self, number, cpus, memory_kb):
        self.put(f"node/node{number}/cpulist", cpus)
        self.put(
            f"node/node{number}/meminfo",
            f"Node {number} MemTotal:       {memory_kb} kB\n"
            f"Node {number} MemFree:  1 kB",
        )

    def test_two_nodes_with_threads(self):
        self.put_cpus("0-7", {cpu: f"{cpu % 4},{cpu % 4 + 4}" for cpu in range(8)})
        self.put_node(0, "0-1,4-5", 1048576)
        self.put_node(1, "2-3,6-7", 2097152)
        topology = sysfs.read_sysfs(self.root)
        self.assertEqual("2x2x2", str(topology))
        self.assertEqual(((0, 4), (1, 5)), topology.nodes[0].cores)
        self.assertEqual([1024, 2048], [node.memory_mb for node in topology.nodes])

    def test_offline_cpus_and_empty_nodes_do_not_count(self):
        self.put_cpus("0,2", {0: "0-1", 2: "2"})
        self.put_node(0, "0,2", 1024)
        self.put_node(2, "", 999)
        topology = sysfs.read_sysfs(self.root)
        self.assertEqual(((0,), (2,)), topology.nodes[0].cores)
        self.assertEqual(1, topology.memory_mb)

    def test_no_numa(self):
        self.put_cpus("0-1", {0: "0", 1: "1"})
        topology = sysfs.read_sysfs(self.root)
        self.assertEqual(("1x2", None), (str(topology), topology.memory_mb))
        self.assertIn("no NUMA nodes", topology.assumptions[0])

    def test_refused(self):
        error = self.assertRaises(TopologyError, sysfs.read_sysfs, self.root)
        self.assertIn("--topology", str(error))
        self.put("cpu/online", "0-x")
        error = self.assertRaises(TopologyError, sysfs.read_sysfs, self.root)
        self.assertIn("0-x", str(error))

    def test_this_machine(self):
        if not pathlib.Path("/sys/devices/system/cpu/online").exists():
            self.skipTest("no sysfs")
        self.assertTrue(sysfs.read_sysfs().cpus)
