# SPDX-License-Identifier: Apache-2.0
"""Thousands of odd files of what was collected; see :mod:`tests.fuzz`."""

import collections

import fixtures
import testtools

from tests.fuzz import collected
from tests.fuzz.test_files import FILES, SEED, limit_memory


class CollectedCase(testtools.TestCase):
    """A reader, and odd files for it."""

    def assert_foreseen(self, files):
        """Assert that so many odd files are read, or refused with a message."""
        limit_memory(self)
        directory = self.useFixture(fixtures.TempDir()).path
        outcomes = collections.Counter()
        faults = [
            collected.fault(directory, SEED, number, outcomes)
            for number in range(files)
        ]
        self.assertEqual([], [fault for fault in faults if fault][:3])
        self.assertEqual({True, False}, set(outcomes), "is anything read?")


class CollectedTest(CollectedCase):
    def test_collected(self):
        self.assert_foreseen(FILES)
