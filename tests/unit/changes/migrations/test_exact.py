# SPDX-License-Identifier: Apache-2.0

import importlib.util
import unittest

from nova_perfvm.changes.migrations.patterns import Limits, TooLargeError
from tests.unit.changes.migrations.test_goals import FewHostsCase


@unittest.skipUnless(
    importlib.util.find_spec("ortools"), "OR-tools is not installed: extra [plan]"
)
class BestPlanTest(FewHostsCase):
    def test_the_cheapest_of_two(self):
        self.add("a", 1, 64, 32)
        self.add("b", 1, 64, 16)
        self.add("c", 1, 32)
        plan = self.free("hp48", best=True)
        self.assertEqual([("b-16", "b", "c")], self.steps(plan))

    def test_two_change_places_by_way_of_a_spare_host(self):
        self.add("a", 2, 60, 48)
        self.add("b", 1, 48, 16)
        self.add("c", 1, 32)
        plan = self.free("hp32", 2, best=True)
        self.assertEqual((3, True), (len(plan.moves), plan.complete))


class LimitsTest(unittest.TestCase):
    def test_more_than_can_be_tried(self):
        limits = Limits(moves=2, tried=100_000)
        self.assertTrue(limits.exceeded(0, 3))
        self.assertFalse(limits.exceeded(10**9, 2))
        self.assertRaises(TooLargeError, limits.count)
