# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm.diagnose.hosts import expected_slots, inventories_of, summarize
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.snapshot import Aggregate, Inventory
from tests.unit.facts.snapshot.clouds import POLICY, Cloud
from tests.unit.rules import hosts


class ExpectedSlotsTest(testtools.TestCase):
    """Slots that provider.yaml of a host should promise."""

    def slots(self, found, policy=POLICY):
        return expected_slots(policy, views_of(found.snapshot())[0])

    def test_by_what_the_host_has(self):
        for options, expected in (
            ({}, 2),
            ({"shape": "2x10"}, 0),
            ({"mode": "shared"}, 0),
            ({"memory_gb": 100}, 0),
            ({"shape": "4x20", "memory_gb": 1000}, 2),
        ):
            found = Cloud()
            found.add_host("h1", **options)
            self.assertEqual(expected, self.slots(found))

    def test_by_its_label(self):
        other = dataclasses.replace(POLICY.classes[0], name="small", vcpus=10)
        other = dataclasses.replace(other, max_per_host=None, flavors=None)
        two = dataclasses.replace(POLICY, classes=(*POLICY.classes, other))
        found = Cloud()
        found.add_host("h1")
        # Of which class they would be, nobody says.
        self.assertEqual(0, self.slots(found, two))
        for name, expected in (("high-performance", 2), ("small", 4), ("general", 0)):
            label = Aggregate(1, "u1", "a", {const.CLASS_KEY: name}, frozenset({"h1"}))
            found.parts["aggregates"] = (label,)
            self.assertEqual(expected, self.slots(found, two))

    def test_on_mixed_hosts(self):
        found = Cloud()
        found.add_host("h1")
        found.change_inventories("h1", PCPU=Inventory(20, 20), VCPU=Inventory(20, 20))
        self.assertEqual(0, self.slots(found))
        cell = hosts.policy(exclusive="cell")
        self.assertEqual(1, self.slots(found, cell))

    def test_memory_that_is_kept_back(self):
        """What holds two VMs by its cells and one by what is left over."""
        found, total = Cloud(), 130 * 1024
        found.add_host("h1", memory_gb=130)
        for reserved, expected in ((0, 2), (8192, 1)):
            found.change_inventories(
                "h1", MEMORY_MB=Inventory(total, total, reserved=reserved)
            )
            self.assertEqual(expected, self.slots(found))


class SummaryTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        self.cloud.add_host("hp1")
        self.cloud.add_host("g1", "shared")

    def test_mode_slots_and_inventories(self):
        for node in range(2):
            self.cloud.add_hp(f"vm{node}", "hp1", first=20 * node, node=node)
        first, second = summarize(POLICY, self.cloud.snapshot())
        self.assertEqual(
            ("hp1", "dedicated", 2, 2),
            (first.view.host, first.mode, first.slots, first.used),
        )
        self.assertEqual(("shared", None), (second.mode, second.slots))
        found = inventories_of(first.view)["hp1 PCPU"]
        self.assertEqual("40 of 40 used, at most 40 a VM", found)

    def test_elastic_hosts(self):
        policy = dataclasses.replace(POLICY, placement="units")
        for slots, taken, expected in (
            (2, 0, ("elastic", 2, 0)),
            (2, 1000, ("elastic", 2, 1)),
            (1, 1000, ("elastic", 1, 1)),
            (0, 0, ("shared", 0, 0)),
        ):
            found = Cloud(policy)
            found.add_elastic("h1", slots)
            found.allocate("vm", "h1_perfvm_a", {const.RC_UNIT: taken})
            (host,) = summarize(policy, found.snapshot())
            self.assertEqual(expected, (host.mode, host.slots, host.used))

    def test_what_placement_does_not_know(self):
        snapshot = dataclasses.replace(self.cloud.snapshot(), providers=())
        (host, _) = summarize(POLICY, snapshot)
        self.assertEqual(("unknown", None), (host.mode, host.slots))

    def test_classes(self):
        def classes(*labels):
            metadata = {const.CLASS_KEY: ",".join(labels)}
            both = Aggregate(1, "u1", "a", metadata, frozenset({"hp1", "g1"}))
            self.cloud.parts["aggregates"] = (both,)
            return [host.classes for host in summarize(POLICY, self.cloud.snapshot())]

        high, general = ("high-performance",), ("general",)
        self.assertEqual([high, general], classes())
        # As enrolling labels.
        self.assertEqual([high, general + high], classes(*high, *general))
        self.assertEqual([(), general], classes(*general))
