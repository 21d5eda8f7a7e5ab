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
from tests.benchmark.scheduling.pools import POOLS

SMALLEST = ["--hosts", "4", "--rounds", "1", "--study-hosts", "4"]


class SmallestTest(testtools.TestCase):
    def test_every_study_runs_and_every_file_is_written(self):
        output = io.StringIO()
        for name, value in (
            ("sys.stdout", output),
            ("signal.signal", lambda *_: None),
            ("tests.benchmark.scheduling.limits.DRAWS", 1),
            ("tests.benchmark.scheduling.limits.TAKEN", (0.5,)),
            ("tests.benchmark.scheduling.cost.TAKEN", (0.0,)),
            ("tests.benchmark.scheduling.groups.TAKEN", (0.0,)),
            (
                "tests.benchmark.scheduling.cost.POOLS",
                {"dedicated": POOLS["dedicated"]},
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, value))
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(0, main([*SMALLEST, "--output", directory]))
            text = pathlib.Path(directory, report.FIGURES).read_text()

        figures = json.loads(text)
        self.assertEqual(list(STUDIES), list(figures))
        self.assertIn("breadth-first", output.getvalue())
        for record in figures["cost"]["figures"] + figures["cells"]["figures"]:
            self.assertEqual((1, 4), (record["placed"], record["hosts_seen"]))
        # Each NUMA node by itself, or both for a VM, one way or the other.
        for record in figures["groups"]["figures"]:
            ways = 2 if record["scheme"] == "cells" and record["groups"] else 1
            self.assertEqual(4 * ways, record["candidates"])
