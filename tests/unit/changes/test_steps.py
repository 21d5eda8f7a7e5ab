# SPDX-License-Identifier: Apache-2.0


import testtools

from nova_perfvm import constants as const
from nova_perfvm.changes import steps as do
from nova_perfvm.changes.steps import with_changes
from nova_perfvm.facts.snapshot import Inventory, Provider, Snapshot


class RefusedTest(testtools.TestCase):
    """What each step does the functional tests hold against a real cloud."""

    def test_what_placement_refuses(self):
        held = {"a": {const.RC_UNIT: 1}}
        stock = {const.RC_UNIT: Inventory(1000, 1000)}
        child = Provider(
            "c",
            "h1_perfvm_a",
            1,
            stock,
            traits=frozenset({const.TRAIT_CELLS}),
            allocations=held,
            parent="p",
        )
        names = frozenset({const.RC_UNIT, const.TRAIT_CELLS, const.RC_SLOT})
        seen = Snapshot("", providers=(child,), names=names)
        for step in (
            do.SetInventory("c", child.name, {}),
            do.DetachChild("c", child.name),
            do.DeleteChild("c", child.name),
        ):
            self.assertRaises(ValueError, with_changes, seen, [step])
        for used in (const.RC_UNIT, const.TRAIT_CELLS):
            forget = do.DeleteName(used, "resource class or trait")
            self.assertEqual(seen, with_changes(seen, [forget]))
        forget = do.DeleteName(const.RC_SLOT, "resource class")
        left = with_changes(seen, [forget]).names
        self.assertEqual({const.RC_UNIT, const.TRAIT_CELLS}, left)
