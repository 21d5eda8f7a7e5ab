# SPDX-License-Identifier: Apache-2.0
"""A thousand random operations on each scheme, with and without the filter.

PERFVM_RANDOM_STEPS (1000) and PERFVM_RANDOM_SEED say how many, and which.
"""

import os
import random

from tests.operations import case, clouds

STEPS = int(os.environ.get("PERFVM_RANDOM_STEPS", "1000"))
SEED = os.environ.get("PERFVM_RANDOM_SEED")
# In so many operations, or half as many more, each kind has to have its effect.
ENOUGH = 1000


class RandomTest:
    PATIENCE = 30

    def test_random_operations(self):
        seed = int(SEED or random.SystemRandom().randrange(10**6))
        enough = STEPS >= ENOUGH
        run = case.Run(self, STEPS, seed, more=STEPS // 2 if enough else 0)
        run()
        if enough:
            self.assertEqual({}, run.rare())
            self.assertGreater(run.both, run.count // 2)


class SlotsTest(RandomTest, clouds.SlotsCloud):
    pass


class SlotsWithoutFilterTest(RandomTest, clouds.SlotsCloud):
    FILTER = False


class UnitsTest(RandomTest, clouds.UnitsCloud):
    pass


class UnitsWithoutFilterTest(RandomTest, clouds.UnitsCloud):
    FILTER = False
