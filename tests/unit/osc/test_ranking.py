# SPDX-License-Identifier: Apache-2.0
"""``explain --ranking``; tests/functional compares it with nova-scheduler."""

import json

from nova_perfvm.facts.snapshot import Aggregate
from tests.unit.facts.snapshot.clouds import GENERAL
from tests.unit.osc.base import CommandCase
from tests.unit.osc.test_documented import spread_cloud

EXPLAIN = ("explain", "--boot-from-volume", "--ranking", "--flavor", GENERAL)
ALONE = "[filter_scheduler]\nweight_classes = nova.scheduler.weights.ram.RAMWeigher"


class RankingTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.cloud = spread_cloud()

    def rank(self, *arguments, conf=None):
        """Return the rows by host, in their order."""
        self.save(self.cloud)
        more = ("--nova-conf", self.file(conf)) if conf else ()
        saved = ("--snapshot", self.path, "-f", "json", *more, *arguments)
        self.assertEqual(0, self.run_command(*EXPLAIN, *saved), self.stderr)
        return {row["Host"]: row for row in json.loads(self.stdout)}

    def test_one_weigher(self):
        rows = self.rank(conf=f"{ALONE}\nram_weight_multiplier = 2\n")
        self.assertEqual(["g2", "g3", "g1"], list(rows))
        self.assertEqual(
            [2.0, 2 * 30 / 35, 2 * 20 / 35], [r["Sum"] for r in rows.values()]
        )
        # Less than nothing turns them round.
        self.assertEqual(-0.01, rows["g1"]["To Go Up"]["value"])
        self.assertEqual([], rows["g1"]["Rests On"])
        self.assertNotIn("not known", self.stderr)

    def test_an_aggregate_has_its_own_multiplier(self):
        metadata = {"ram_weight_multiplier": "0.5"}
        self.cloud.parts["aggregates"] = [
            Aggregate(1, "a", "slow", metadata, frozenset({"g2"})),
            Aggregate(
                2, "b", "slower", {"ram_weight_multiplier": "x"}, frozenset({"g1"})
            ),
        ]
        rows = self.rank("--host", "g2", conf=ALONE)
        self.assertEqual(["g3", "g1", "g2"], list(rows))
        self.assertEqual(
            ("slow", 0.5), (rows["g2"]["ram"]["aggregate"], rows["g2"]["Sum"])
        )
        change = rows["g2"]["To Be First"]
        # g3 has 0.857 of it.
        self.assertEqual(
            ("slow", "ram_weight_multiplier", 0.858),
            (change["aggregate"], change["multiplier"], change["value"]),
        )

    def test_what_is_not_known(self):
        conf = f"{ALONE},their.Weigher\nhost_subset_size = 2\n"
        rows = self.rank(conf=conf)
        self.assertEqual(["Weigher"], rows["g3"]["Rests On"])
        self.assertIsNone(rows["g3"]["Weigher"]["multiplier"])
        self.assertIn("host_subset_size: one of the first 2 is taken", self.stderr)
        self.assertIn("of 2 neighbours may be the other way round", self.stderr)
        del self.cloud.hosts["g3"].reported["free_ram_mb"]
        rows = self.rank(conf=ALONE)
        self.assertEqual([0.0] * 3, [row["Sum"] for row in rows.values()])
        self.assertIn("hosts with equal sums follow", self.stderr)

    def test_a_server_that_moves_leaves_its_host_out(self):
        self.cloud.add("vm", "g2", GENERAL, {}, volume_root=True, image="i")
        self.save(self.cloud)
        moving = ("explain", "--server", "vm", "--ranking", "--snapshot", self.path)
        self.assertEqual(0, self.run_command(*moving), self.stderr)
        self.assertNotIn("| g2 ", self.stdout)
        for words in ("2 of 3 hosts would take it", "soft_affinity"):
            self.assertIn(words, self.stderr)

    def test_mistakes(self):
        path = self.save(self.cloud)
        conf = self.file(f"{ALONE}\nram_weight_multiplier = x\n")
        for words, *arguments in (
            (
                "ram_weight_multiplier: found 'x', expected a number",
                "--nova-conf",
                conf,
            ),
            ("host g9 is not among those that would take it", "--host", "g9"),
            ("not allowed with argument", "--long"),
        ):
            self.assert_refused(3, words, *EXPLAIN, "--snapshot", path, *arguments)
