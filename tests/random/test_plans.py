# SPDX-License-Identifier: Apache-2.0
"""Refusals on each scheme that a plan of migrations cures.

PERFVM_REFUSALS (20) and PERFVM_RANDOM_SEED say how many, and which.
"""

import os
import random

from tests.operations import clouds
from tests.operations.refusals import Refusals

COUNT = int(os.environ.get("PERFVM_REFUSALS", "20"))
SEED = os.environ.get("PERFVM_RANDOM_SEED")


class PlansTest:
    PATIENCE = 60

    def test_refusals_are_cured(self):
        seed = int(SEED or random.SystemRandom().randrange(10**6))
        run = Refusals(self, COUNT, seed)
        run()
        self.assertEqual(COUNT, run.cured)
        self.assertGreaterEqual(run.seen["clean audits"], 2 * COUNT)


class SlotsTest(PlansTest, clouds.CrampedSlotsCloud):
    pass


class UnitsTest(PlansTest, clouds.CrampedUnitsCloud):
    pass
