# SPDX-License-Identifier: Apache-2.0
"""What ``--execute`` of plans refuses without a cloud."""

import pathlib

from tests.unit.osc.test_explain import SavedCase


class ExecuteTest(SavedCase):
    def refused(self, words, *options):
        self.assertEqual(3, self.run_saved("plan", "drain", "hp1", *options))
        self.assertIn(words, self.stderr)
        self.assertEqual("", self.stdout)

    def test_a_snapshot_is_no_cloud(self):
        self.refused("a snapshot is no cloud", "--execute")
        self.refused("a snapshot is no cloud", "--execute", "--yes")

    def test_options_that_need_it(self):
        there = pathlib.Path(self.path).with_name("plan.json")
        self.refused("--record, --yes and --policy-changed are for", "--yes")
        self.refused("are for --execute", "--policy-changed")
        self.refused("are for --execute", "--record", str(there))
        self.assertFalse(there.exists())
        self.refused("expected a number above 0", "--patience", "0")
