# SPDX-License-Identifier: Apache-2.0

import importlib.util
import random
import unittest

from nova_perfvm.changes.migrations import exact, goals
from nova_perfvm.changes.migrations.patterns import Limits, TooLargeError
from tests.unit.changes.migrations import clouds
from tests.unit.changes.migrations.test_goals import FewHostsCase, planning_of


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
        # The end is two migrations away, and takes three.
        plan = self.free("hp32", 2, best=True, max_moves=2)
        self.assertEqual((0, False), (len(plan.moves), plan.complete))

    def test_slots_by_few_migrations(self):
        """It wins no fewer than without, and takes no more migrations than told."""
        # Of the last one the best end takes more steps than there may be.
        for seed, budget in ((1, 2), (2, 3), (2_000_083, 3), (2_000_083, 5)):
            scene = clouds.scene(random.Random(seed), 6, 14)
            planning = planning_of(scene.policy, scene.snapshot)
            (vm_class,) = scene.policy.pinned_classes
            usual = goals.defragment(planning, vm_class, budget)
            best = goals.defragment(planning, vm_class, budget, best=True)
            self.assertLessEqual(len(best.moves), budget)
            self.assertGreaterEqual(best.gained, usual.gained, seed)

    def test_the_usual_plan_where_no_best_is_found(self):
        self.add("a", 1, 64, 16)
        self.add("b", 1, 32)
        self.patch(exact, "_MOST_ENDS", 0)
        plan = self.free("hp48", best=True)
        self.assertEqual(
            ([("a-16", "a", "b")], True), (self.steps(plan), plan.complete)
        )
        said = "no best plan was found: this one is as without --exact"
        self.assertIn(said, plan.notes)
        # Where there is no other, that is an error.
        self.assertRaises(
            exact.UnsolvedError, self.free, "hp48", 3, best=True, max_moves=0
        )


class LimitsTest(unittest.TestCase):
    def test_more_than_can_be_tried(self):
        limits = Limits(moves=2, tried=100_000)
        self.assertTrue(limits.exceeded(0, 3))
        self.assertFalse(limits.exceeded(10**9, 2))
        self.assertRaises(TooLargeError, limits.count)
