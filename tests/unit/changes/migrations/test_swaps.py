# SPDX-License-Identifier: Apache-2.0
"""Trades of hosts by a short stop of one server."""

import collections
import dataclasses
import random

from nova_perfvm.changes.migrations import goals, model
from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.diagnose.explain import request_of
from tests.unit.changes.migrations import clouds
from tests.unit.changes.migrations.test_goals import FewHostsCase, PlanCase, planning_of

STOP = "a short stop of "
SHELVE = "openstack server shelve --offload --wait i-b-32"
UNSHELVE = (
    "openstack --os-compute-api-version 2.91 server unshelve --host a --wait i-b-32"
)


class TradeCase(FewHostsCase):
    """No host takes any of two servers; where they trade, another one has room."""

    def setUp(self):
        super().setUp()
        self.cloud.parts["microversion"] = "2.91"
        self.build(a=(2, 64, 48), b=(1, 48, 32))

    def says(self, plan):
        return "; ".join(plan.reasons + plan.notes)


class FreeTest(TradeCase):
    def test_it_is_said_and_planned_only_where_it_is_allowed(self):
        self.assertNotIn(STOP, self.says(self.free("hp32")))
        plan = self.free("hp32", stops=False)
        self.assertEqual(((), 0), (plan.moves, plan.gained))
        self.assertIn(
            f"{STOP}b-32 (i-b-32) would help: a-48 (i-a-48) can move meanwhile, and "
            "b-32 from b to a: plan that with --allow-stop",
            plan.reasons,
        )
        plan = self.free("hp32", stops=True)
        self.assertTrue(plan.complete)
        self.assertEqual(
            [("b-32", "b", ""), ("a-48", "a", "b"), ("b-32", "", "a")], self.steps(plan)
        )
        self.assertEqual(["shelve", "live", "unshelve"], [m.how for m in plan.moves])
        commands = [model.command(move) for move in plan.moves]
        self.assertEqual([SHELVE, UNSHELVE], commands[::2])
        self.assertEqual((1, 0, 1), (plan.live, plan.cold, plan.pinned))
        self.assertEqual(48 * 1024, plan.memory_mb)
        self.assertIn("its root disk, a volume, stays", self.says(plan))
        self.walk(self.policy, self.cloud.snapshot(), plan)

    def test_no_stop_where_there_is_another_way(self):
        self.add("c", 1, 48)
        for flavor, count in (("hp32", 1), ("hp32", 2)):
            plan = self.free(flavor, count, stops=True)
            self.assertTrue(plan.complete)
            self.assertNotIn("shelve", {move.how for move in plan.moves})

    def test_who_is_not_stopped(self):
        kept = dict(self.cloud.servers), dict(self.cloud.parts)
        both = ("a-48", "b-32")
        for changes, parts in (
            # It would be started.
            ({"status": "SHUTOFF"}, {}),
            # What is on it would be lost.
            ({"other_disks_gb": 1}, {}),
            # Nova does not unshelve to a host.
            ({}, {"microversion": "2.90"}),
            ({}, {"microversion": ""}),
        ):
            for name in both:
                self.cloud.change_server(name, **changes)
            self.cloud.parts |= parts
            plan = self.free("hp32", stops=True)
            self.assertEqual((), plan.moves, changes)
            self.cloud.servers, self.cloud.parts = map(dict, kept)
        excluded = frozenset({"a-48"})
        self.assertEqual((), self.free("hp32", stops=True, excluded=excluded).moves)


class DrainTest(TradeCase):
    def test_others_trade_so_that_one_leaves(self):
        self.add("c", 1, 32, 32)
        plan = goals.drain(self.planning(stops=False), "c")
        self.assertIn(STOP, plan.reasons[-1])
        self.assertEqual((0, 1), (plan.gained, plan.wanted))
        plan = goals.drain(self.planning(stops=True), "c")
        self.assertTrue(plan.complete)
        self.assertEqual(("c-32", "c", "a"), self.steps(plan)[-1])
        self.walk(self.policy, self.cloud.snapshot(), plan)


class DefragmentTest(PlanCase):
    """An elastic host that one general server blocks, and one with a pinned server."""

    def setUp(self):
        super().setUp()
        self.policy = clouds.policy("units", shapes=("1x8", "2x8"))
        builder = clouds.Builder(random.Random(0), self.policy)
        self.cloud = builder.cloud
        self.cloud.parts["microversion"] = "2.91"
        for name, slots, shape in (("large", 4, "2x8"), ("small", 2, "1x8")):
            self.cloud.add_elastic(name, slots, shape, 64)
        self.assertTrue(builder.add("g2", "large"))
        self.assertTrue(builder.add("hp16", "small"))

    def plan(self, budget=3):
        wishes = {"stops": True, "max_moves": budget}
        planning = planning_of(self.policy, self.cloud.snapshot(), **wishes)
        (vm_class,) = self.policy.pinned_classes
        return goals.defragment(planning, vm_class)

    def test_a_general_server_and_a_pinned_one_trade(self):
        self.assertEqual(0, self.plan(budget=2).gained)
        plan = self.plan()
        self.assertEqual(2, plan.gained)
        self.walk(self.policy, self.cloud.snapshot(), plan)

    def test_the_cheaper_one_is_stopped(self):
        """The disk of an image is copied twice, while a volume stays."""
        for disk_gb, stopped in ((10, "s0"), (40, "s1")):
            self.cloud.change_server("s0", disk_gb=disk_gb)
            plan = self.plan()
            self.assertEqual(stopped, plan.moves[0].name)
            copied = f"{disk_gb} GiB at most, is copied to Glance and back"
            words = copied if stopped == "s0" else "a volume, stays"
            self.assertIn(f"its root disk, {words}", "; ".join(plan.notes))


class RandomCloudsTest(PlanCase):
    """On tiny clouds all orders of migrations are tried.

    :cvar SEEDS: of clouds of which some have no way without a stop
    """

    SEEDS = (61, 148, 3, 7)

    def test_only_where_no_order_of_migrations_makes_room(self):
        stopped = 0
        for seed in self.SEEDS:
            scene = clouds.scene(random.Random(seed), most_hosts=3, most_servers=6)
            snapshot = dataclasses.replace(scene.snapshot, microversion="2.91")
            request, _ = request_of(snapshot, flavor=scene.flavor)
            planning = planning_of(scene.policy, snapshot, stops=True)
            kind = planning.kind_of_request(request)
            start = Arrangement(planning)
            have = start.room(kind, 1000)
            plan = goals.free(planning, request, have + 1)
            self.walk(scene.policy, snapshot, plan)
            if any(move.how == "shelve" for move in plan.moves):
                stopped += 1
                rooms = (now.room(kind, have + 1) for now in reachable(start))
                self.assertEqual(have, max(rooms), seed)
        self.assertGreater(stopped, 1)


def reachable(start):
    """Yield all arrangements that migrations lead to."""
    seen, waiting = set(), collections.deque([start])
    while waiting:
        now = waiting.popleft()
        here = frozenset(
            (server.id, name, server.pinned_cpus)
            for name, host in now.hosts.items()
            for server in host.view.servers
        )
        if here in seen:
            continue
        seen.add(here)
        yield now
        for name in now.hosts:
            for server in now.movable(name):
                for target in now.planning.targets - {name}:
                    after = now.moved(server.id, target)
                    if after is not None:
                        waiting.append(after)
