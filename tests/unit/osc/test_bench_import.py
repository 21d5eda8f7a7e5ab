# SPDX-License-Identifier: Apache-2.0
"""``bench import`` by the console script, and what ``bench compare`` makes of it."""

import json

from tests.unit.measure.bench.test_tools import OUTPUTS, output
from tests.unit.osc.base import CommandCase


class ImportTest(CommandCase):
    def imported(self, who, *options, kind="guest"):
        path = self.directory / f"{who}.json"
        whose = ("--who", who, "--kind", kind, "--output", path)
        sample = OUTPUTS / "sysbench_default.txt"
        status = self.run_command("bench", "import", sample, *whose, *options)
        self.assertEqual(0, status, self.stderr)
        return path

    def test_nothing_ran_at_once_that_nobody_stated(self):
        for options, at_once in (((), 1), (("--at-once", "2"), 2)):
            paths = [self.imported(who, *options) for who in ("vm1", "vm2")]
            paths.append(self.imported("host", *options, kind="host"))
            for path in paths:
                found = json.loads(path.read_text())["measurements"]
                self.assertEqual({at_once}, {one["at_once"] for one in found})
            self.run_command("bench", "compare", *paths)
            self.assertIn(f"vm1, 2 threads, {at_once} at once", self.stdout)

    def test_all_files_at_once_and_nothing_written(self):
        (self.directory / "old").write_text(output("memory_stream.txt"))
        path = self.directory / "vm1.json"
        self.assert_refused(
            1,
            "sysbench_cpu.txt: it ran with 2 threads, not 20: omit --threads\n",
            *("bench", "import", OUTPUTS / "sysbench_cpu.txt", self.directory / "old"),
            *("--who", "vm1", "--kind", "guest", "--threads", "20", "--output", path),
        )
        self.assertIn("old: sysbench: expected what sysbench cpu prints", self.stderr)
        self.assertFalse(path.exists())
