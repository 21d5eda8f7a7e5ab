# SPDX-License-Identifier: Apache-2.0
"""A hundred or two of the files that ``make fuzz`` tries thousands of."""

from tests.fuzz.commands import KINDS
from tests.fuzz.test_files import FilesCase


class OddFilesTest(FilesCase):
    def test_some_of_each_kind(self):
        for kind in KINDS:
            self.cases.outcomes.clear()
            self.assert_foreseen(kind, 20)

    def test_the_good_files_are_good(self):
        for kind in KINDS:
            self.cases.outcomes.clear()
            self.assertEqual([], list(self.cases.good_faults(kind)))
            # Modes of hosts and names are drawn, and not all are of these files.
            outcomes = self.cases.outcomes
            self.assertGreaterEqual(outcomes[False], outcomes[True])
