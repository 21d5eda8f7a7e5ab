# SPDX-License-Identifier: Apache-2.0
"""A few refusals that a plan of migrations cures; tests/random does more.

Those on elastic hosts are there alone: such a refusal is rare, and takes minutes.
"""

from tests.operations import clouds
from tests.operations.refusals import Refusals

COUNT = 2
# Any would do; chance is for the long runs.
SEED = 1


class PlansTest:
    def test_refusals_are_cured(self):
        run = Refusals(self, COUNT, SEED)
        run()
        self.assertEqual(COUNT, run.cured)
        self.assertGreaterEqual(run.seen["clean audits"], 2 * COUNT)


class TestSlots(PlansTest, clouds.CrampedSlotsCloud):
    HOSTS = clouds.CrampedSlotsCloud.HOSTS[1:3] + clouds.CrampedSlotsCloud.HOSTS[-2:]
