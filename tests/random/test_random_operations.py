# SPDX-License-Identifier: Apache-2.0
"""A thousand random operations on each scheme, with and without the filter.

PERFVM_RANDOM_STEPS (1000) and PERFVM_RANDOM_SEED say how many, and which.
"""

import datetime as dt
import os
import random

from tests.operations import case, cells, clouds

STEPS = int(os.environ.get("PERFVM_RANDOM_STEPS", "1000"))
SEED = os.environ.get("PERFVM_RANDOM_SEED")
# In so many operations, or half as many more, each kind has to have its effect.
ENOUGH = 1000


class RandomTest:
    PATIENCE = 30
    RUN = case.Run

    def seed(self):
        return random.SystemRandom().randrange(10**6)

    def test_random_operations(self):
        seed = int(SEED or self.seed())
        enough = STEPS >= ENOUGH
        run = self.RUN(self, STEPS, seed, more=STEPS // 2 if enough else 0)
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


class CellsTest(RandomTest, cells.CellsCloud):
    RUN = cells.CellsRun

    def seed(self):
        """Return the same each day, so that Nova by itself is asked for the same."""
        return dt.datetime.now(tz=dt.UTC).toordinal()


class StockTest(CellsTest, cells.StockCloud):
    """What CellsTest does, on Nova by itself."""

    def test_random_operations(self):
        super().test_random_operations()
        if STEPS >= ENOUGH:
            self.assertNotEqual([], self.offers.refused)
