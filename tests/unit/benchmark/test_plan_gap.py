# SPDX-License-Identifier: Apache-2.0

import fixtures
import testtools

from tests.benchmark import best_plan, plan_gap


class SummaryTest(testtools.TestCase):
    def test_what_is_counted(self):
        """Gained, gained at best, and what both cost."""
        rows = [
            (2, 2, 30, 30),
            (2, 2, 40, 30),
            (1, 3, 10, 90),
            (0, 0, 0, 0),
            (1, None, 10, None),
        ]
        self.assertEqual(
            [
                "clouds: 5, of which the best is known: 4",
                "where something can be gained: 3",
                "VMs gained: 5, at best 7",
                "fewer than at best: 1 clouds",
                "as many, at a higher cost: 1 of 2 clouds",
            ],
            list(plan_gap.summary(rows)),
        )


class MeasureTest(testtools.TestCase):
    def test_the_best_is_not_worse(self):
        for seed in range(4):
            gained, most, spent, least = plan_gap.measure(seed)
            self.assertLessEqual(gained, most)
            if gained == most:
                self.assertLessEqual(least, spent)

    def test_a_cloud_whose_best_plan_is_not_found(self):
        self.useFixture(fixtures.MockPatchObject(best_plan, "MOST_CHANGES", 0))
        _, most, _, least = plan_gap.measure(0)
        self.assertEqual((None, None), (most, least))

    def test_figures_of_a_few_clouds(self):
        stream = self.useFixture(fixtures.StringStream("stdout")).stream
        self.useFixture(fixtures.MonkeyPatch("sys.stdout", stream))
        plan_gap.main(["--clouds", "2"])
        stream.seek(0)
        self.assertIn("clouds: 2, of which the best is known: 2", stream.read())
