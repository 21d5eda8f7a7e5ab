# SPDX-License-Identifier: Apache-2.0
"""What the table of over-granting says of what was counted."""

import functools
import io

import fixtures
import testtools

from nova_perfvm.sandbox.processes import programs
from tests.benchmark.overgranting import __main__ as program
from tests.benchmark.overgranting import processes, table


class TallyTest(testtools.TestCase):
    def test_rounds_at_capacity_are_not_over(self):
        tally = processes.Tally(used=[20, 40, 60, 40, 160])

        self.assertEqual(2, tally.over)

    def test_line_says_what_became_of_claims(self):
        row = table.Row("READ COMMITTED", None, 10)
        tally = processes.Tally([40, 60], [204, 409, 204, 204, 500, 204, 204, 409])

        cells = " ".join(table.line(row, tally).split())

        self.assertEqual("READ COMMITTED unknown to it 10 1/2 60 5 2 1", cells)


class RowsTest(testtools.TestCase):
    def test_every_setting_is_tried(self):
        rows = table.rows(("A", "B"), (False, True), (10, 1))

        self.assertEqual(8, len(set(rows)))
        self.assertIn(table.Row("B", True, 1), rows)


class MainTest(testtools.TestCase):
    def test_missing_mariadb_is_told_with_the_command_that_installs_it(self):
        nowhere = functools.partial(programs.find_programs, directories=())
        self.useFixture(
            fixtures.MonkeyPatch(
                "tests.benchmark.overgranting.database.find_programs", nowhere
            )
        )
        self.useFixture(fixtures.MonkeyPatch("signal.signal", lambda *_: None))
        stderr = io.StringIO()
        self.useFixture(fixtures.MonkeyPatch("sys.stderr", stderr))

        self.assertEqual(1, program.main([]))

        said = stderr.getvalue()
        self.assertIn("not installed: mariadbd", said)
        self.assertIn("apt-get install", said)
        self.assertNotIn("rabbitmq", said)
        self.assertNotIn("Traceback", said)
