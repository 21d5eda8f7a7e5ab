# SPDX-License-Identifier: Apache-2.0
import json

import testtools

from nova_perfvm.generate.hosts import TopologyError, lscpu


def rows(*cpus):
    """Return ``lscpu -J -e`` of (cpu, node, core) each."""
    named = ({"cpu": c, "node": n, "core": k} for c, n, k in cpus)
    return json.dumps({"cpus": list(named)})


class RowsTest(testtools.TestCase):
    def test_what_versions_and_kernels_write(self):
        offline = {"cpu": "1", "node": None, "core": None, "online": "no"}
        for expected, *cpus in (
            # Siblings wherever they are.
            ([((0, 2),), ((1, 3),)], (0, 0, 0), (1, 1, 1), (2, 0, 0), (3, 1, 1)),
            ([((0,),)], ("0", "0", "0")),
            # Without NUMA.
            ([((3,),)], (3, "-", 1)),
            ([((3,),)], (3, None, 1)),
        ):
            document = json.loads(rows(*cpus))
            document["cpus"].append(offline)
            topology = lscpu.parse_lscpu(json.dumps(document), "f")
            self.assertEqual(expected, [node.cores for node in topology.nodes])
            self.assertEqual("", topology.numbering)

    def test_offline_in_other_languages(self):
        for unknown, word in (("-", "nein"), (None, True), (None, "нет")):
            offline = {"cpu": 1, "node": unknown, "core": unknown, "online": word}
            document = json.loads(rows((0, 0, 0)))
            document["cpus"].append(offline)
            topology = lscpu.parse_lscpu(json.dumps(document), "f")
            self.assertEqual({0}, topology.cpus)

    def test_unknown_values_that_are_not_json(self):
        """Version 2.38.1 with an offline CPU."""
        text = """\
        {"cpus": [
              {
                 "cpu": 0,
                 "node": 0,
                 "core": 0,
                 "online": true
              },{
                 "cpu": 1,
                 "node": -,
                 "core": -,
                 "l1d:l1i:l2:l3": -,
                 "maxmhz": -
              }
        ]}"""
        self.assertEqual({0}, lscpu.parse_lscpu(text, "f").cpus)

    def test_cores_counted_anew_in_each_socket(self):
        found = [{"cpu": n, "core": 0, "socket": n, "node": 0} for n in (0, 1)]
        topology = lscpu.parse_lscpu(json.dumps({"cpus": found}), "f")
        self.assertEqual("1x2", str(topology))

    def test_refused(self):
        for words, text in (
            ("row 1: expected columns", json.dumps({"cpus": [{"cpu": 0}]})),
            ("cpu is 'x'", rows(("x", 0, 0))),
            ("cpu is -1", rows((-1, 0, 0))),
            ("cpu is 99999999", rows((99999999, 0, 0))),
            ("core is None", rows((0, 0, None))),
            ("core is True", rows((0, 0, True))),
            ("cpu is inf", rows((float("inf"), 0, 0))),
            ("node is [", rows((0, [1], 0))),
            ("listed twice", rows((0, 0, 0), (0, 1, 1))),
            ("no online CPU", json.dumps({"cpus": []})),
            ("not JSON", "# CPU,Core,Socket,Node\n0,0,0,0"),
            ("not JSON", "[" * 100000),
            ("no list 'cpus'", "[]"),
        ):
            error = self.assertRaises(TopologyError, lscpu.parse_lscpu, text, "f")
            self.assertIn(words, str(error))
            self.assertNotIn("\n", str(error))
