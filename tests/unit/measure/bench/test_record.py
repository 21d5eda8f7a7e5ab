# SPDX-License-Identifier: Apache-2.0

import pathlib

import fixtures
import testtools

from nova_perfvm.measure.bench import scenario
from nova_perfvm.measure.bench.record import Record, RecordError
from tests.unit.measure.bench.test_scenario import SAMPLE


class RecordTest(testtools.TestCase):
    def test_where_nothing_can_begin(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        wanted = scenario.load(SAMPLE)
        error = self.assertRaises(RecordError, Record.begin, str(directory), wanted)
        self.assertEqual(f"{directory} is a directory: name a file in it", str(error))
        path = directory / "run.json"
        path.write_text("{}")
        error = self.assertRaises(RecordError, Record.begin, str(path), wanted)
        self.assertIn("go on with it by --resume, or name another", str(error))
