# SPDX-License-Identifier: Apache-2.0

import json

from tests.unit.measure import test_disk
from tests.unit.osc.base import CommandCase


class PlanDiskTest(CommandCase):
    def test_each_status(self):
        path = self.file(test_disk.fio())
        for status, counts, more in (
            (1, {"rule": 4}, ("--guarantee-read", "5000")),
            (
                0,
                {"rule": 4, "demonstrated": 2, "extrapolated": 9},
                ("--guarantee-read", "5000", *(2 * ("--contended", path))),
            ),
            (2, {"rule": 0}, ("--guarantee-read", "5000000")),
        ):
            command = ("plan", "disk", "--alone", path, *more, "-f", "json")
            self.assertEqual(status, self.run_command(*command), self.stderr)
            found = {row["Count"]: row["VMs"] for row in json.loads(self.stdout)}
            self.assertEqual(counts, found)
            self.assertIn("128.0 I/Os were outstanding", self.stderr)

    def test_mistakes(self):
        path, empty = self.file(test_disk.fio()), self.file("{}")
        for words, *arguments in (
            ("nothing is guaranteed", "--alone", path),
            ("its JSON has no jobs", "--alone", empty, "--guarantee-read", "1"),
            ("cannot read /nowhere", "--alone", path, "--contended", "/nowhere"),
            ("arguments are required: --alone",),
        ):
            self.assert_refused(3, words, "plan", "disk", *arguments)
