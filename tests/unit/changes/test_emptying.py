# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm.changes.what_if.emptying import emptied, in_words
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts.snapshot import Inventory
from nova_perfvm.policy import loader
from tests.unit.facts.snapshot.clouds import Cloud

POLICY = loader.load()


class EmptiedTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        for name in ("h1", "h2", "h3", "h4"):
            self.cloud.add_host(name)
        self.cloud.add_hp("a", "h1")
        self.cloud.add_hp("b", "h1", first=20, node=1)
        self.cloud.add_hp("c", "h2")
        self.cloud.add_hp("d", "h3")
        self.snapshot = self.cloud.snapshot()

    def test_each_after_those_before(self):
        found = emptied(POLICY, self.snapshot, settings_for(POLICY))
        self.assertEqual(["h4", "h2"], [one.host for one in found])
        self.assertEqual([[], ["h3"]], [[m.target for m in one.moves] for one in found])
        self.assertEqual(
            "of your 4 hosts 2 can be emptied in this order: h4, h2",
            in_words(self.snapshot, found),
        )

    def test_hosts_that_are_down(self):
        host = dataclasses.replace(self.cloud.hosts["h4"], up=False)
        self.cloud.hosts["h4"] = host
        snapshot = self.cloud.snapshot()
        found = emptied(POLICY, snapshot, settings_for(POLICY))
        self.assertEqual(["h2"], [one.host for one in found])

    def test_servers_that_would_move_twice(self):
        """General servers go to the least used hosts, which are emptied next."""
        cloud = Cloud()
        for number in range(5):
            cloud.add_host(f"g{number}", "shared")
            cloud.change_inventories(f"g{number}", DISK_GB=Inventory(4000, 4000))
            cloud.add_general(f"s{number}", f"g{number}")
        found = emptied(POLICY, cloud.snapshot(), settings_for(POLICY))
        moves = [move for one in found for move in one.moves]
        self.assertEqual(["g0", "g1", "g2", "g3"], [one.host for one in found])
        words = f"{len(moves)} migrations in all; 4 if all these hosts are disabled"
        self.assertIn(words, found[-1].notes[-1])
        self.assertGreater(len(moves), 4)

    def test_none(self):
        self.cloud.add_hp("e", "h2", first=20, node=1)
        self.cloud.add_hp("f", "h3", first=20, node=1)
        for number in (0, 1):
            self.cloud.add_hp(f"g{number}", "h4", first=20 * number, node=number)
        snapshot = self.cloud.snapshot()
        found = emptied(POLICY, snapshot, settings_for(POLICY))
        self.assertEqual("of your 4 hosts 0 can be emptied", in_words(snapshot, found))

    def test_progress(self):
        said = []
        emptied(POLICY, self.snapshot, settings_for(POLICY), lambda *a: said.append(a))
        self.assertEqual([("hosts", number, 4) for number in range(4)], said)
