# SPDX-License-Identifier: Apache-2.0
"""What the table of over-granting says of what was counted."""

import functools
import io

import fixtures
import testtools

from nova_perfvm.sandbox.processes import programs
from tests.benchmark import overgranting


class OvergrantingTest(testtools.TestCase):
    def test_rounds_at_capacity_are_not_over(self):
        statuses = [204, 409, 204, 204, 500, 204, 204, 409]

        cells = overgranting.cells([20, 40, 60, 40, 160], statuses)

        self.assertEqual(("2/5", 160, 5, 2, 1), cells)

    def test_missing_mariadb_is_told_with_the_command_that_installs_it(self):
        nowhere = functools.partial(programs.find_programs, path="/nowhere")
        stderr = io.StringIO()
        for name, value in (
            ("tests.benchmark.database.find_programs", nowhere),
            ("signal.signal", lambda *_: None),
            ("sys.stderr", stderr),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, value))

        self.assertEqual(1, overgranting.main([]))

        said = stderr.getvalue()
        self.assertIn("not installed: mariadbd", said)
        self.assertIn("apt-get install", said)
        self.assertNotIn("Traceback", said)
