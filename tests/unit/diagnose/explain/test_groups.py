# SPDX-License-Identifier: Apache-2.0
"""Verdicts on servers of server groups; tests/functional asks Nova's own filters."""

import dataclasses

from nova_perfvm import constants as const
from nova_perfvm.diagnose import groups
from nova_perfvm.diagnose.explain import NotFoundError
from nova_perfvm.facts.snapshot import Migration
from tests.unit.diagnose.explain.test_explain import ExplainCase

APART, TOGETHER = const.NOVA_GROUP_ANTI_AFFINITY, const.NOVA_GROUP_AFFINITY
SAME = const.NOVA_SAME_HOST


class GroupsCase(ExplainCase):
    def setUp(self):
        super().setUp()
        for name in ("h1", "h2"):
            self.cloud.add_host(name)
        self.cloud.add_hp("a", "h1")

    def codes(self, **what):
        """Return the code of each host; what is said of them is in ``said``."""
        self.found = self.explain(**what)
        return [verdict.code for verdict in self.found.verdicts]


class HardPoliciesTest(GroupsCase):
    def test_anti_affinity(self):
        group = self.cloud.add_group("anti-affinity", "a")
        self.assertEqual([APART, ""], self.codes(group="group0"))
        _, said = self.verdict(group=group)
        words = "anti-affinity group group0 (i-group0) may have 1 server on a host, "
        self.assertEqual(f"{words}and has here, or on the way: a (i-a)", said)
        self.assertEqual("host h1: migrate a (i-a)", str(self.found.fixes[0]))
        # It is where it is, and another of its group is not to join it.
        self.cloud.add_hp("b", "h2")
        self.cloud.add_group("anti-affinity", "a", "b")
        self.assertEqual([SAME, APART], self.codes(server="a"))
        self.assertEqual([APART, APART], self.codes(group="group1"))
        # Neither has a host to go to.
        self.assertEqual((None, None), self.found.fixes)
        self.cloud.add_group("anti-affinity", "a", "b", most=2)
        self.assertEqual(["", ""], self.codes(group="group2"))

    def test_who_is_on_the_way(self):
        self.cloud.add_group("anti-affinity", "a")
        move = Migration("m", "i-a", "migration", "finished", "h2", "h1")
        self.cloud.change_server("a", status="VERIFY_RESIZE")
        self.cloud.parts["migrations"] = (move,)
        self.assertEqual([APART, APART], self.codes(group="group0"))
        self.cloud.add_group("anti-affinity", "a", most=2)
        self.assertEqual(["", ""], self.codes(group="group1"))
        group, views = self.found.request.group, [v.view for v in self.found.verdicts]
        self.assertEqual([1, 1], [groups.room(group, view, 9) for view in views])

    def test_affinity(self):
        self.cloud.add_group("affinity", "a")
        self.assertEqual(["", TOGETHER], self.codes(group="group0"))
        self.assertEqual([SAME, TOGETHER], self.codes(server="a"))
        _, said = self.verdict(group="group0", host="h2")
        words = "affinity group group0 (i-group0) has no server here, and servers on h1"
        self.assertEqual(words, said)
        # Who is no longer there has no host.
        self.cloud.add_group("affinity", "gone")
        self.assertEqual(["", ""], self.codes(group="group1"))

    def test_room_where_the_group_is(self):
        self.cloud.add_hp("x", "h1", first=20, node=1)
        self.cloud.add_group("affinity", "a")
        self.assertIn("placement.resource", self.codes(group="group0")[0])
        # Not the one of the group is to go.
        self.assertEqual("host h1: migrate x (i-x)", str(self.found.fixes[0]))


class SoftPoliciesTest(GroupsCase):
    def test_what_nova_prefers(self):
        for policy, words in (
            ("soft-affinity", "prefers these"),
            ("soft-anti-affinity", "prefers other hosts"),
        ):
            group = self.cloud.add_group(policy, "a")
            self.assertEqual(["", ""], self.codes(group=group))
            self.assertIn(words, self.found.notes[-1])
            self.assertIn("servers on h1", self.found.notes[-1])

    def test_how_far_hosts_are_from_it(self):
        for policy, hosts, expected in (
            ("soft-affinity", "", 0),
            ("soft-affinity", "aa", 0),
            ("soft-affinity", "abc", 2),
            ("soft-anti-affinity", "abc", 0),
            ("soft-anti-affinity", "aab", 1),
        ):
            self.cloud.add_group(policy)
            group = self.cloud.parts["server_groups"][-1]
            self.assertEqual(expected, groups.unmet(group, list(hosts)), hosts)


class NamesTest(GroupsCase):
    def test_groups_by_name(self):
        self.cloud.add_group("affinity", "a")
        error = self.assertRaises(NotFoundError, self.explain, group="x")
        self.assertIn("openstack server group list --all-projects", str(error))
        (group,) = self.cloud.parts["server_groups"]
        twin = dataclasses.replace(group, id="twin")
        self.cloud.parts["server_groups"] = (group, twin)
        error = self.assertRaises(NotFoundError, self.explain, group="group0")
        self.assertIn("name the ID: i-group0, twin", str(error))

    def test_a_snapshot_without(self):
        self.cloud.parts["server_groups"] = None
        error = self.assertRaises(NotFoundError, self.explain, group="x")
        self.assertIn("there are no server groups in this snapshot", str(error))
        self.explain(server="a")
        self.assertIn("there are no server groups in this snapshot", self.about[-1])
