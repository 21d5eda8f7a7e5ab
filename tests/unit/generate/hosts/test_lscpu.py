# SPDX-License-Identifier: Apache-2.0
import json

import testtools

from nova_perfvm.generate.hosts import TopologyError, lscpu


def rows(*cpus, **constant):
    """Return ``lscpu -J -e`` of (cpu, node, core) each."""
    named = ({"cpu": c, "node": n, "core": k} | constant for c, n, k in cpus)
    return json.dumps({"cpus": list(named)})


def summary(nested=False, **fields):
    """Return ``lscpu -J``; newer versions nest the NUMA nodes."""
    fields = [
        {"field": name.replace("_", " ") + ":", "data": data}
        for name, data in fields.items()
    ]
    if nested:
        fields = [{"field": "NUMA:", "data": None, "children": fields}]
    return json.dumps({"lscpu": fields})


class RowsTest(testtools.TestCase):
    def test_siblings_wherever_they_are(self):
        text = rows((0, 0, 0), (1, 1, 1), (2, 0, 0), (3, 1, 1), socket=0, online=True)
        topology = lscpu.parse(text, "f")
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
        self.assertEqual({0}, lscpu.parse(text, "f").cpus)

    def test_cores_counted_anew_in_each_socket(self):
        text = json.dumps(
            {
                "cpus": [
                    {"cpu": 0, "core": 0, "socket": 0, "node": 0},
                    {"cpu": 1, "core": 0, "socket": 1, "node": 0},
                ]
            }
        )
        self.assertEqual("1x2", str(lscpu.parse(text, "f")))

    def test_no_socket_and_no_node(self):
        for nothing in ("-", None):
            row = {"cpu": 3, "core": 1, "socket": nothing, "node": nothing}
            topology = lscpu.parse(json.dumps({"cpus": [row]}), "f")
            self.assertEqual(("1x1", {3}), (str(topology), topology.cpus))

    def test_no_numa_column(self):
        text = json.dumps({"cpus": [{"cpu": 0, "core": 0}, {"cpu": 1, "core": 1}]})
        topology = lscpu.parse(text, "f")
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
            ("neither 'cpus' nor 'lscpu'", "[]"),
            ("neither 'cpus' nor 'lscpu'", '{"blockdevices": []}'),
        ):
            with self.subTest(words):
                error = self.assertRaises(TopologyError, lscpu.parse, text, "f")
                self.assertIn(words, str(error))
                self.assertNotIn("\n", str(error))
                if "row" in str(error):
                    self.assertIn("give the output of: lscpu", str(error))


class SummaryTest(testtools.TestCase):
    def test_no_cpus(self):
        text = summary(**{"Thread(s) per core": "2", "NUMA node0 CPU(s)": ""})
        error = self.assertRaises(TopologyError, lscpu.parse, text, "f")
        self.assertEqual("f: no online CPU is listed", str(error))

    def test_no_smt(self):
        for nested in (False, True):
            text = summary(
                nested,
                **{
                    "Thread(s) per core": "1",
                    "NUMA node0 CPU(s)": "0-19",
                    "NUMA node1 CPU(s)": "20-39",
                    "NUMA node(s)": "2",
                },
            )
            topology = lscpu.parse(text, "f")
            self.assertEqual("2x20", str(topology))
            self.assertEqual(((), ()), (topology.assumptions, topology.numbering))

    def test_smt_as_x86_numbers_it(self):
        for first, second, pair in (
            ("0-19,40-59", "20-39,60-79", (0, 40)),
            (
                ",".join(map(str, range(0, 80, 2))),
                ",".join(map(str, range(1, 80, 2))),
                (0, 40),
            ),
        ):
            text = summary(
                **{
                    "Architecture": "x86_64",
                    "Thread(s) per core": "2",
                    "NUMA node0 CPU(s)": first,
                    "NUMA node1 CPU(s)": second,
                }
            )
            topology = lscpu.parse(text, "f")
            self.assertEqual("2x20x2", str(topology))
            self.assertEqual(pair, topology.nodes[0].cores[0])
            self.assertIn("CPUs 0,40 do", topology.numbering[0])

    def test_no_numa(self):
        text = summary(
            **{"Thread(s) per core": "1", "On-line CPU(s) list": "0-3"},
        )
        topology = lscpu.parse(text, "f")
        self.assertEqual("1x4", str(topology))
        self.assertIn("no NUMA nodes", topology.assumptions[0])

    def test_refused(self):
        smt = {"Thread(s) per core": "2", "NUMA node0 CPU(s)": "0-3"}
        for words, fields in (
            ("'Thread(s) per core:'", {"NUMA node0 CPU(s)": "0-3"}),
            ("'Thread(s) per core:'", smt | {"Thread(s) per core": "-"}),
            # So many threads would take the machine's memory to count.
            ("'Thread(s) per core:'", smt | {"Thread(s) per core": "9" * 12}),
            ("'Thread(s) per core:'", smt | {"Thread(s) per core": "9" * 5000}),
            ("'Thread(s) per core:'", smt | {"Thread(s) per core": "0"}),
            ("'NUMA node0 CPU(s):'", {"Thread(s) per core": "1"}),
            (
                "'NUMA node0 CPU(s):'",
                {"Thread(s) per core": "1", f"NUMA node{'9' * 5000} CPU(s)": "0"},
            ),
            ("CPU list", smt | {"NUMA node0 CPU(s)": "0-3,x"}),
            # Neighbours share a core, or an odd one is offline.
            ("does not say which", smt | {"NUMA node1 CPU(s)": "4-7"}),
            ("does not say which", smt | {"NUMA node0 CPU(s)": "0-2"}),
            ("does not say which", smt | {"Architecture": "ppc64le"}),
        ):
            with self.subTest(words):
                error = self.assertRaises(
                    TopologyError, lscpu.parse, summary(**fields), "f"
                )
                self.assertIn(words, str(error))
                self.assertIn("lscpu", str(error))
