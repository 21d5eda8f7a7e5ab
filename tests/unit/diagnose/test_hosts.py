# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm.diagnose.hosts import expected_slots, summarize
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
            with self.subTest(options):
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
    def test_classes(self):
        found = Cloud()
        found.add_host("hp1")
        found.add_host("g1", "shared")

        def classes(*labels):
            metadata = {const.CLASS_KEY: ",".join(labels)}
            both = Aggregate(1, "u1", "a", metadata, frozenset({"hp1", "g1"}))
            found.parts["aggregates"] = (both,)
            return [host.classes for host in summarize(POLICY, found.snapshot())]

        high, general = ("high-performance",), ("general",)
        self.assertEqual([high, general], classes())
        # As enrolling labels.
        self.assertEqual([high, general + high], classes(*high, *general))
        self.assertEqual([(), general], classes(*general))
