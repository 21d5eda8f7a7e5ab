# SPDX-License-Identifier: Apache-2.0
"""Plans that keep server groups together and apart; test_goals has random ones."""

from nova_perfvm.changes.migrations import goals
from nova_perfvm.diagnose.explain import request_of
from tests.unit.changes.migrations.test_goals import FewHostsCase


class GroupsCase(FewHostsCase):
    """One host of two servers, two of one slot each."""

    def setUp(self):
        super().setUp()
        self.build(a=(2, 128, 16, 32), b=(1, 64), c=(1, 64))

    def drain(self, host="a"):
        plan = goals.drain(self.planning(), host)
        self.walk(self.policy, self.cloud.snapshot(), plan)
        return plan


class HardPoliciesTest(GroupsCase):
    def test_servers_that_are_to_be_apart(self):
        self.cloud.add_host("d", shape="1x8", memory_gb=128)
        self.cloud.add_group("anti-affinity", "a-16", "a-32", most=2)
        wide = self.planning(excluded=frozenset("bc"))
        self.assertEqual(2, goals.drain(wide, "a").gained)
        self.cloud.parts["server_groups"] = ()
        self.cloud.add_group("anti-affinity", "a-16", "a-32")
        narrow = self.planning(excluded=frozenset("bc"))
        plan = goals.drain(narrow, "a")
        self.assertEqual((1, 2), (plan.gained, plan.wanted))
        self.assertIn("stays: no host was found for it", plan.reasons[0])
        self.assertEqual(2, len({move.target for move in self.drain().moves}))

    def test_servers_that_are_to_be_together(self):
        self.cloud.add_group("affinity", "a-16", "a-32")
        plan = self.drain()
        self.assertEqual(((), 2), (plan.moves, len(plan.reasons)))
        words = "affinity group group0 (i-group0) is on this host alone: Nova "
        self.assertIn(words, plan.reasons[0])
        # Where the group is on another host already, it may go there.
        self.cloud.add_host("d", shape="1x12", memory_gb=192)
        self.cloud.add_small("other", "d", 0, 0, "hp16")
        self.cloud.parts["server_groups"] = ()
        self.cloud.add_group("affinity", "a-16", "a-32", "other")
        self.assertEqual(["d", "d"], [move.target for move in self.drain().moves])

    def test_room_for_servers_of_a_group(self):
        self.cloud.add_host("d", shape="1x8", memory_gb=128)
        for policy, names, most, expected in (
            # Slots of a are taken; b and c have one each, d has two.
            ("anti-affinity", (), 1, 3),
            ("anti-affinity", (), 2, 4),
            ("anti-affinity", ("a-16",), 1, 3),
            # All where the first one is.
            ("affinity", (), 1, 2),
            ("affinity", ("a-16",), 1, 0),
        ):
            self.cloud.parts["server_groups"] = ()
            group = self.cloud.add_group(policy, *names, most=most)
            snapshot = self.cloud.snapshot()
            request, _ = request_of(snapshot, flavor="hp16", group=group)
            planning = self.planning(max_moves=0)
            plan = goals.free(planning, request, 9)
            self.assertEqual(9 - expected, plan.wanted, (policy, names, most))

    def test_room_beside_a_server_that_has_to_stay(self):
        group = self.cloud.add_group("affinity", "a-16")
        snapshot = self.cloud.snapshot()
        request, _ = request_of(snapshot, flavor="hp16", group=group)
        plan = goals.free(self.planning(), request, 1)
        self.assertEqual(["a-32"], [move.name for move in plan.moves])


class SoftPoliciesTest(GroupsCase):
    def test_preferred_hosts_come_first(self):
        for name in "de":
            self.cloud.add_host(name, shape="1x12", memory_gb=192)
            self.cloud.add_small(f"{name}-16", name, 0, 0, "hp16")
        excluded = frozenset({"b", "c", "a-32"})
        for near in "de":
            for policy in ("soft-affinity", "soft-anti-affinity"):
                self.cloud.parts["server_groups"] = ()
                self.cloud.add_group(policy, "a-16", f"{near}-16")
                plan = goals.drain(self.planning(excluded=excluded), "a")
                (move,) = plan.moves
                together = move.target == near
                self.assertEqual(policy == "soft-affinity", together, near)
                self.assertNotIn("further", "; ".join(plan.notes))

    def test_what_is_worse_is_said(self):
        self.cloud.add_group("soft-affinity", "a-16", "a-32")
        words = "soft-affinity group group0 (i-group0) is further from its policy "
        words += "afterwards: 2 servers on 2 hosts, before on 1"
        self.assertIn(words, self.drain().notes)


class UnseenTest(GroupsCase):
    def test_it_is_said(self):
        self.cloud.parts["server_groups"] = None
        notes = goals.drain(self.planning(), "a").notes
        self.assertIn("no server groups in this snapshot", "; ".join(notes))
