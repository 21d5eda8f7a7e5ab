# SPDX-License-Identifier: Apache-2.0
"""Thousands of odd records of plans that are carried out; see :mod:`tests.fuzz`."""

import collections
import pathlib
import random

import fixtures
import testtools

from nova_perfvm.changes.migrations import record
from nova_perfvm.exceptions import PerfVMError
from tests.fuzz import mutations
from tests.fuzz.test_files import FILES, SEED, limit_memory
from tests.unit.changes.migrations.test_record import execution


class RecordsCase(testtools.TestCase):
    """What ``plan resume`` reads before anything else."""

    def assert_foreseen(self, files):
        """Assert that so many odd records are read, or refused with a message."""
        limit_memory(self)
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "odd"
        outcomes = collections.Counter()
        for number in range(files):
            rng = random.Random(f"{SEED}/records/{number}")
            data = mutations.mutate(rng, record.dumps(execution()))
            path.write_bytes(data)
            try:
                found = record.read(str(path))
            except PerfVMError as exc:
                outcomes[True] += 1
                self.assertIn(str(path), str(exc), data)
            else:
                outcomes[False] += 1
                # It can be written again, and means the same then.
                self.assertEqual(found, record.loads(record.dumps(found)), data)
        self.assertEqual({True, False}, set(outcomes), "is anything read?")


class RecordsTest(RecordsCase):
    def test_records(self):
        self.assert_foreseen(FILES)
