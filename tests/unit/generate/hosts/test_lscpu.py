# SPDX-License-Identifier: Apache-2.0
import json

import testtools

from nova_perfvm.generate.hosts import TopologyError, lscpu


def rows(*cpus, **constant):
    """Return ``lscpu -J -e`` of (cpu, node, core) each."""
    named = ({"cpu": c, "node": n, "core": k} | constant for c, n, k in cpus)
    return json.dumps({"cpus": list(named)})


class RowsTest(testtools.TestCase):
    def test_siblings_wherever_they_are(self):
        text = rows((0, 0, 0), (1, 1, 1), (2, 0, 0), (3, 1, 1), socket=0, online=True)
        topology = lscpu.parse_lscpu(text, "f")
        self.assertEqual([((0, 2),), ((1, 3),)], [n.cores for n in topology.nodes])
        self.assertEqual(((), ()), (topology.assumptions, topology.numbering))

    def test_texts_and_offline_cpus_of_older_versions(self):
        text = json.dumps(
            {
                "cpus": [
                    {"cpu": "0", "node": "0", "core": "0", "online": "yes"},
                    {"cpu": "1", "node": None, "core": None, "online": "no"},
                ]
            }
        )
        self.assertEqual({0}, lscpu.parse_lscpu(text, "f").cpus)

    def test_cores_counted_anew_in_each_socket(self):
        text = json.dumps(
            {
                "cpus": [
                    {"cpu": 0, "core": 0, "socket": 0, "node": 0},
                    {"cpu": 1, "core": 0, "socket": 1, "node": 0},
                ]
            }
        )
        self.assertEqual("1x2", str(lscpu.parse_lscpu(text, "f")))

    def test_no_socket_and_no_node(self):
        for nothing in ("-", None):
            row = {"cpu": 3, "core": 1, "socket": nothing, "node": nothing}
            topology = lscpu.parse_lscpu(json.dumps({"cpus": [row]}), "f")
            self.assertEqual(("1x1", {3}), (str(topology), topology.cpus))

    def test_no_numa_column(self):
        text = json.dumps({"cpus": [{"cpu": 0, "core": 0}, {"cpu": 1, "core": 1}]})
        topology = lscpu.parse_lscpu(text, "f")
        self.assertEqual("1x2", str(topology))
        self.assertIn("no column 'node'", topology.assumptions[0])

    def test_refused(self):
        for words, text in (
            ("row 1: no column 'core'", json.dumps({"cpus": [{"cpu": 0}]})),
            ("row 1: no column 'cpu'", json.dumps({"cpus": [{"core": 0}]})),
            ("row 1 is no object", json.dumps({"cpus": ["0"]})),
            ("cpu is 'x'", rows(("x", 0, 0))),
            ("cpu is -1", rows((-1, 0, 0))),
            ("cpu is 99999999", rows((99999999, 0, 0))),
            ("CPU 0 has no core, as if it were offline", rows((0, 0, None))),
            ("CPU 0 has no core, as if it were offline", rows((0, "-", "-"))),
            ("core is None", rows((0, 0, None), online=True)),
            ("core is True", rows((0, 0, True))),
            ("cpu is inf", rows((float("inf"), 0, 0))),
            ("node is [", rows((0, [1], 0))),
            ("listed twice", rows((0, 0, 0), (0, 1, 1))),
            ("no online CPU", json.dumps({"cpus": []})),
            ("no JSON", "# CPU,Core,Socket,Node\n0,0,0,0"),
            ("no JSON", ""),
            ("no JSON", "[" * 100000),
            ("no list 'cpus'", "[]"),
            ("no list 'cpus'", '{"lscpu": []}'),
        ):
            with self.subTest(words):
                error = self.assertRaises(TopologyError, lscpu.parse_lscpu, text, "f")
                self.assertIn(words, str(error))
                self.assertNotIn("\n", str(error))
                if "row" in str(error):
                    self.assertIn("give the output of: lscpu", str(error))
