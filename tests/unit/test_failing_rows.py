# SPDX-License-Identifier: Apache-2.0

import testtools

from tests import failing_rows

CASES = {"one": 1, "two": 3}


class Sample(testtools.TestCase):
    """Tests that fail, and one that ends before its failing row."""

    def in_a_loop(self):
        for name, number in CASES.items():
            for step in (0, 1):
                self.compare(name, number + step - step)

    def compare(self, name, number):
        self.assertEqual({"one": 1, "two": 2}[name], number)

    def behind_a_loop(self):
        for _number in (1, 2):
            pass
        self.fail("no row")

    def skipped(self):
        for number in (1, 2):
            self.skipTest(f"not {number}")


class RowsTest(testtools.TestCase):
    def details(self, method):
        failing_rows.install()
        test = Sample(method)
        test.run(testtools.TestResult())
        return {name: found.as_text() for name, found in test.getDetails().items()}

    def test_the_variables_of_each_loop_are_shown(self):
        self.assertRegex(
            self.details("in_a_loop")["row"],
            r"^in_a_loop, line \d+: name='two', number=3\n"
            r"in_a_loop, line \d+: step=0$",
        )

    def test_nothing_is_shown_where_no_row_failed(self):
        for method in ("behind_a_loop", "skipped"):
            self.assertNotIn("row", self.details(method))
