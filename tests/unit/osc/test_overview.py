# SPDX-License-Identifier: Apache-2.0
"""``map`` and ``metrics``, of saved snapshots."""

import re

from tests.unit.diagnose.formats.map_page import data
from tests.unit.facts.snapshot.clouds import HP
from tests.unit.osc.test_explain import SavedCase


class OverviewCommandsTest(SavedCase):
    def test_map(self):
        self.assertEqual(0, self.run_saved("map"))
        found = data(self.stdout)
        self.assertEqual(["hp1", "hp2"], [host["name"] for host in found["hosts"]])
        self.assertEqual(
            set(self.cloud.flavors), {v["name"] for v in found["verdicts"]}
        )
        self.assertIn("snapshot of 2026-01-01", self.stderr)

    def test_metrics(self):
        self.assertEqual(0, self.run_saved("metrics"))
        line = 'perfvm_slots_free{host="hp2",class="high-performance"} 1\n'
        self.assertIn(line, self.stdout)

    def test_flavors_that_are_named(self):
        self.assertEqual(0, self.run_saved("map", "--flavor", HP))
        (verdict,) = data(self.stdout)["verdicts"]
        self.assertEqual(HP, verdict["name"])
        self.run_saved("metrics", "--flavor", HP, "--flavor", "g.2c.4g")
        flavors = set(re.findall(r'accepting{flavor="([^"]+)"', self.stdout))
        self.assertEqual({HP, "g.2c.4g"}, flavors)

    def test_a_file_is_replaced_or_left(self):
        path = self.directory / "map"
        options = ("--output", str(path))
        self.assertEqual(0, self.run_saved("map", *options))
        self.assertEqual(f"{path}: 2 hosts, 3 servers\n", self.stdout)
        before = path.read_text()
        wrong = ("--snapshot", "/no", *options)
        self.assert_refused(1, "cannot read /no", "map", *wrong)
        self.assertEqual(before, path.read_text())

    def test_mistakes(self):
        for command in ("map", "metrics"):
            wrong = ("--flavor", "x", "--snapshot", self.path)
            self.assert_refused(1, "there is no flavor 'x'", command, *wrong)
