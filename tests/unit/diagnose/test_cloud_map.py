# SPDX-License-Identifier: Apache-2.0

import json

import testtools

from nova_perfvm.diagnose import cloud_map, overview
from tests.unit.facts.snapshot.clouds import HP, POLICY, Cloud


class DocumentTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        self.cloud.add_host("hp1")
        self.cloud.add_host("hp2")
        self.cloud.add_hp("a", "hp1")
        self.cloud.add_host("g1", "shared")
        self.cloud.add_general("b", "g1")

    def document(self):
        self.overview = overview.look(POLICY, self.cloud.snapshot())
        found = cloud_map.document(self.overview)
        # It goes through JSON unchanged, but for tuples.
        json.dumps(found, allow_nan=False)
        return found

    def test_hosts_with_cells_servers_and_slots(self):
        found = self.document()
        hp1, hp2, g1 = found["hosts"]
        self.assertEqual(
            ("hp1", "up", "dedicated", "2x20", "assumed symmetric"),
            tuple(hp1[key] for key in ("name", "state", "mode", "shape", "source")),
        )
        self.assertEqual(
            [[0, "", "0-19", "0-19"], [1, "", "20-39", ""]],
            [cell[:4] for cell in hp1["cells"]],
        )
        ((identity, name, number, flavor, *_, pins, nodes),) = hp1["servers"]
        self.assertEqual(("i-a", "a", "0-19", [0]), (identity, name, pins, nodes))
        self.assertEqual("high-performance", found["classes"][number][0])
        self.assertEqual(HP, flavor)
        self.assertEqual([[0, 2, 1, 1, ["20-39"]]], hp1["slots"])
        self.assertEqual([[0, 2, 0, 2, ["0-19", "20-39"]]], hp2["slots"])
        # No slot was there ever.
        self.assertEqual([], g1["slots"])
        self.assertEqual("", g1["servers"][0][8])

    def test_verdicts_are_in_words_once(self):
        for number in range(9):
            self.cloud.add_host(f"more{number}", "shared")
        found = self.document()
        (verdict,) = [one for one in found["verdicts"] if one["name"] == HP]
        hp1, hp2, *shared = verdict["hosts"]
        self.assertEqual((0, 0), (hp1, hp2))
        self.assertEqual(10, len(shared))
        # The host with a server says more than the empty ones.
        self.assertEqual(2, len(set(shared)))
        code, *words = found["texts"][shared[1] - 1]
        judged = self.overview.flavors[0].verdicts[-1]
        self.assertEqual(judged.code, code)
        self.assertEqual(len(judged.reasons), len(words))
        self.assertIn("trait CUSTOM_PERFVM_HIGH_PERFORMANCE is missing", words)

    def test_findings_are_with_their_hosts(self):
        self.cloud.add_hp("c", "hp2", count=0)
        self.cloud.change_inventories("hp1", CUSTOM_PERFVM_SLOT=None)
        found = self.document()
        codes = {
            name: {found["findings"][number][1] for number in numbers}
            for name, numbers in (
                *((host["name"], host["findings"]) for host in found["hosts"]),
                ("elsewhere", found["elsewhere"]),
            )
        }
        self.assertEqual(
            {
                "hp1": {"audit.inventory_differs"},
                # It is about the server, which is there.
                "hp2": {"audit.not_pinned"},
                "g1": set(),
                "elsewhere": {"audit.retry_count_unknown"},
            },
            codes,
        )

    def test_a_server_called_like_a_host_takes_no_finding_from_it(self):
        self.cloud.add("hp1", "g1", HP, {})
        self.cloud.change_inventories("hp1", CUSTOM_PERFVM_SLOT=None)
        hp1, *_, g1 = self.document()["hosts"]
        self.assertEqual(1, len(hp1["findings"]))
        self.assertGreater(len(g1["findings"]), 0)

    def test_servers_on_no_host_and_of_no_class(self):
        self.cloud.add("new", None, HP, {}, status="ERROR", task="x")
        self.cloud.change_server("a", extra_specs={})
        found = self.document()
        self.assertEqual(1, found["placeless"])
        self.assertEqual(2, sum(len(host["servers"]) for host in found["hosts"]))
        (server,) = found["hosts"][0]["servers"]
        self.assertEqual(-1, server[2])
