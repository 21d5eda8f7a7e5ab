# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the scheduler, in its smallest size."""

import io
import json
import pathlib
import tempfile

import fixtures
import testtools

from tests.benchmark.scheduling import report
from tests.benchmark.scheduling.__main__ import STUDIES, main

SMALLEST = ["--hosts", "4", "--rounds", "1", "--study-hosts", "4"]
SMALLEST += ["--draws", "1", "--taken", "0", "--pool", "dedicated"]


class SmallestTest(testtools.TestCase):
    def test_every_study_runs_and_every_file_is_written(self):
        output = self.useFixture(fixtures.MonkeyPatch("sys.stdout", io.StringIO()))
        self.useFixture(fixtures.MonkeyPatch("signal.signal", lambda *_: None))
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(0, main([*SMALLEST, "--output", directory]))
            path = pathlib.Path(directory)
            figures = json.loads((path / report.FIGURES).read_text())
            self.assertIn("<svg", (path / report.PLOT).read_text())

        self.assertEqual(list(STUDIES), list(figures))
        self.assertIn("max_placement_results", output.new_value.getvalue())
        for record in figures["cost"]["figures"]:
            self.assertEqual(record["hosts_seen"] > 0, record["candidates"] > 0)
            if record["taken"] == 0:
                self.assertEqual((1, 4), (record["placed"], record["hosts_seen"]))
