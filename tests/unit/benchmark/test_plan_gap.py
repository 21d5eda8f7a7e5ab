# SPDX-License-Identifier: Apache-2.0
"""Plans on a small cloud of production's shape, and what no plan exceeds."""

import random

import testtools

from tests.benchmark import plan_bound, plan_clouds, plan_gap

HOSTS, SEED = 6, 3


class CloudTest(testtools.TestCase):
    def test_the_shape(self):
        for sizes in (plan_clouds.SMALL, plan_clouds.LARGE):
            vms = plan_clouds.vms_of(50, random.Random(SEED), sizes)
            used = sum(vm[3] for vm in vms) / (
                50 * plan_clouds.NODES * plan_clouds.CPUS
            )
            self.assertTrue(0.83 < used <= 0.95, used)

    def test_groups_are_apart(self):
        found = plan_clouds.snapshot(HOSTS, SEED)
        hosts = {server.id: server.host for server in found.servers}
        self.assertGreater(len(found.server_groups), 3)
        for group in found.server_groups:
            here = [hosts[member] for member in group.members]
            self.assertEqual(len(here), len(set(here)), group)


class BoundTest(testtools.TestCase):
    def bound(self, budget, *nodes):
        """Return the bound for nodes with VMs of these sizes, two nodes a host."""
        cloud = plan_clouds.Cloud(plan_clouds.policy())
        for number, sizes in enumerate(nodes):
            name, node = f"h{number // 2}", number % 2
            if not node:
                cloud.add_enrolled(name)
            first = node * plan_clouds.CPUS
            for size in sizes:
                cloud.add_vm(f"vm{number}-{first}", name, node, first, size)
                first += size
        return plan_bound.bound(cloud.snapshot(), plan_gap.SLOT, budget)[0]

    def test_nodes_of_which_the_best_is_known(self):
        full = (22, 22)
        # 12 CPUs are free on one node, 4 on another: a VM of 4 makes 16 free.
        self.assertEqual(1, self.bound(1, (16, 12, 4), full, (22, 16, 2), full))
        self.assertEqual(0, self.bound(1, (16, 12, 4), full, (22, 22), full))
        # Two VMs have to leave.
        tight = ((16, 12, 2, 2), full, (22, 16, 2), full)
        self.assertEqual([0, 1], [self.bound(budget, *tight) for budget in (1, 2)])

    def test_nodes_that_would_have_to_share_a_vm(self):
        # 50 CPUs are free for three times 8 + 4 + 4, but 8 and 4 fit no node with 10.
        wanting, free = (22, 8, 4, 4, 2, 2, 2), (32, 2)
        self.assertEqual(2, self.bound(9, *[wanting] * 3, *[free] * 5))
        self.assertEqual(3, self.bound(9, *[wanting] * 3, *[free] * 6))

    def test_no_plan_exceeds_it(self):
        found = plan_clouds.snapshot(HOSTS, SEED)
        for budget in (2, 6):
            most, _ = plan_bound.bound(found, plan_gap.SLOT, budget)
            for greedy in (False, True):
                gained, moves, _, notes = plan_gap.measure(
                    found, budget, 60, greedy=greedy
                )
                self.assertLessEqual(moves, budget)
                self.assertLessEqual(gained, most)
                self.assertGreater(gained, 0 if greedy else 0.95 * most - 1)
                said = "HiGHS is not installed" if greedy else f"{gained} more slot"
                self.assertIn(said, notes[0])
