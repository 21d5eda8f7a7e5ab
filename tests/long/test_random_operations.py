# SPDX-License-Identifier: Apache-2.0
"""A thousand random operations on each scheme, with and without the filter.

PERFVM_RANDOM_STEPS and PERFVM_RANDOM_SEED say how many, and which.
"""

import os
import random

from tests.operations import case, clouds

STEPS = int(os.environ.get("PERFVM_RANDOM_STEPS", "1000"))
SEED = os.environ.get("PERFVM_RANDOM_SEED")
# In so many operations each kind has to succeed, or to be refused, so often.
ENOUGH, AT_LEAST = 1000, 3


class RandomTest:
    PATIENCE = 30

    def test_random_operations(self):
        seed = int(SEED or random.SystemRandom().randrange(10**6))
        run = case.Run(self, STEPS, seed)
        run()
        if STEPS >= ENOUGH:
            self.assert_all_kinds(run)

    def assert_all_kinds(self, run):
        """Look that the run says something: each kind of operation had its effect."""
        counts = {
            operation.__name__: (
                run.refused if operation in run.to_be_refused else run.done
            )[operation.__name__]
            for operation in run.weights
        }
        rare = {name: count for name, count in counts.items() if count < AT_LEAST}
        self.assertEqual({}, rare)
        self.assertGreater(run.both, run.count // 2)


class SlotsTest(RandomTest, clouds.SlotsCloud):
    pass


class SlotsWithoutFilterTest(RandomTest, clouds.SlotsCloud):
    FILTER = False


class UnitsTest(RandomTest, clouds.UnitsCloud):
    pass


class UnitsWithoutFilterTest(RandomTest, clouds.UnitsCloud):
    FILTER = False
