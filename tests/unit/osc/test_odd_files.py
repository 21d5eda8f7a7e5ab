# SPDX-License-Identifier: Apache-2.0
"""A few hundred of the files that ``make fuzz`` tries thousands of."""

import fixtures

from tests.fuzz.commands import KINDS, run
from tests.fuzz.test_files import FilesCase


class OddFilesTest(FilesCase):
    def test_some_of_each_kind(self):
        for kind in KINDS:
            self.cases.outcomes.clear()
            self.assert_foreseen(kind, 40)

    def test_the_good_files_are_good(self):
        for kind in KINDS:
            self.cases.outcomes.clear()
            self.assertEqual([], list(self.cases.good_faults(kind)))
            # Modes of hosts and names are drawn, and not all are of these files.
            outcomes = self.cases.outcomes
            self.assertGreaterEqual(outcomes[False], outcomes[True])


class RunTest(FilesCase):
    def test_what_nobody_foresaw_is_seen(self):
        """Of a command that judges, and of one that does not."""

        def fail(*_arguments):
            raise ZeroDivisionError("in the code")

        for arguments, place in (
            (("policy", "show"), "nova_perfvm.policy.loader.load"),
            (("audit", "--snapshot", "/dev/null"), "nova_perfvm.facts.snapshot.load"),
        ):
            with fixtures.MonkeyPatch(place, fail):
                done = run(*arguments)
            (found,) = done.unforeseen
            self.assertIn("in the code", found)
            self.assertTrue(done.failed)

    def test_what_was_foreseen_is_told(self):
        done = run("policy", "show", "--policy", "/none")
        self.assertEqual((1, (), ""), (done.status, done.unforeseen, done.stdout))
        self.assertIn("cannot read /none", done.stderr)
