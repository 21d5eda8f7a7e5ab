# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm import constants as const
from nova_perfvm.placement.schemes import units
from nova_perfvm.tempest_plugin import inventories
from tests.unit.diagnose.explain.test_explain import UNITS


class RoomTest(testtools.TestCase):
    def test_slots(self):
        tree = [{"PCPU": {"total": 20}, const.RC_SLOT: {"total": 1}}, {}]
        self.assertEqual(1, inventories.room(tree, "slots", 2))
        # They may be those of a smaller class.
        tree[0][const.RC_SLOT]["total"] = 4
        self.assertEqual(2, inventories.room(tree, "slots", 2))
        self.assertEqual(0, inventories.room([{"VCPU": {}}], "slots", 2))

    def test_units(self):
        for slots in (0, 1, 2):
            tree = [{"PCPU": {"total": 20}}] + [
                {n: {"total": i.total, "max_unit": i.max_unit}}
                for child in units.children_named(UNITS, "host", slots)
                for n, i in child.inventories.items()
            ]
            with self.subTest(slots):
                self.assertEqual(slots, inventories.room(tree, "units", 2))

    def test_placement_knows_nothing(self):
        left_over = [{const.RC_SLOT: {"total": 1}}]
        self.assertEqual(2, inventories.room(left_over, "none", 2))
