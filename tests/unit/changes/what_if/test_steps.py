# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm.changes import steps as do
from nova_perfvm.changes.what_if.steps import with_changes
from nova_perfvm.facts.snapshot import Inventory
from tests.unit.facts.snapshot.clouds import Cloud

TRAIT = f"{const.TRAIT_ELASTIC}_2"


class StepsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        cloud = Cloud()
        cloud.add_host("h1", "shared")
        cloud.add_general("g", "h1")
        self.found = cloud.snapshot()

    def make(self, *changes):
        self.found = with_changes(self.found, changes)
        return self.found

    def provider(self, uuid="p-h1"):
        return self.found.provider_by_uuid[uuid]

    def test_an_aggregate_that_isolates(self):
        self.make(
            do.CreateName(TRAIT, "trait"),
            do.CreateAggregate("elastic"),
            do.IsolateAggregate("elastic", TRAIT, created=True),
            do.AddHost("elastic", "h1"),
        )
        (aggregate,) = self.found.aggregates
        self.assertEqual({TRAIT}, self.found.names)
        self.assertEqual(({TRAIT}, {"h1"}), (aggregate.elastic_traits, aggregate.hosts))
        self.assertTrue(aggregate.made_by_enroll)
        # Nova tells Placement.
        self.assertEqual({aggregate.uuid}, self.provider().aggregates)
        self.make(do.LeaveAggregate("elastic", "h1"))
        self.assertEqual(frozenset(), self.provider().aggregates)
        self.make(do.DeleteAggregate("elastic"))
        self.assertEqual((), self.found.aggregates)

    def test_a_child_with_units(self):
        inventories = {const.RC_UNIT: Inventory(1000, 1000)}
        self.make(
            do.CreateChild("p-h1", "a", "h1_perfvm_a"),
            do.SetTraits("a", "h1_perfvm_a", frozenset({"T"})),
            do.SetInventory("a", "h1_perfvm_a", inventories),
            do.AddUnits("i-g", "g", {"a": 1}),
        )
        child = self.provider("a")
        self.assertEqual(("p-h1", "p-h1"), (child.parent, child.root))
        self.assertEqual((inventories, {"T"}), (child.inventories, child.traits))
        self.assertEqual({"i-g": 1}, child.units())
        # Who has them gets no more.
        self.make(do.AddUnits("i-g", "g", {"a": 7}))
        self.assertEqual({"i-g": 1}, self.provider("a").units())
        self.make(do.RemoveUnits("i-g", "g", frozenset({"a"})))
        self.assertEqual({}, self.provider("a").units())
        self.assertIn("i-g", self.provider().allocations)
        self.make(do.SetInventory("a", "h1_perfvm_a", {}), do.DetachChild("a", "x"))
        child = self.provider("a")
        self.assertEqual((None, "a"), (child.parent, child.root))
        self.make(do.AdoptChild("p-h1", "a", "h1_perfvm_a"))
        child = self.provider("a")
        self.assertEqual(("p-h1", "p-h1"), (child.parent, child.root))

    def test_what_was_lost(self):
        self.make(do.Allocate("i-x", "x", {"p-h1": {"VCPU": 2}}))
        self.assertEqual({"VCPU": 2}, self.provider().allocations["i-x"])

    def test_aggregates_of_a_provider(self):
        self.make(do.SetProviderAggregates("p-h1", "h1", frozenset({"x"})))
        self.assertEqual({"x"}, self.provider().aggregates)

    def test_a_service_is_as_before_in_the_end(self):
        before = self.found
        self.assertEqual(before, self.make(do.SetService("s-h1", "h1", enabled=False)))

    def test_a_step_that_nobody_can_make_is_no_silence(self):
        @dataclasses.dataclass(frozen=True)
        class Unknown(do.Change):
            words = "unknown"

        self.assertRaises(NotImplementedError, self.make, Unknown())
