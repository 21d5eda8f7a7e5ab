# SPDX-License-Identifier: Apache-2.0
"""What the table of over-granting says of what was counted."""

import testtools

from tests.benchmark import overgranting


class OvergrantingTest(testtools.TestCase):
    def test_rounds_at_capacity_are_not_over(self):
        statuses = [204, 409, 204, 204, 500, 204, 204, 409]

        cells = overgranting.cells([20, 40, 60, 40, 160], statuses)

        self.assertEqual(("2/5", 160, 5, 2, 1), cells)
