# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm import constants as const
from nova_perfvm.placement.host_schemes import units
from nova_perfvm.tempest_plugin import inventories
from tests.unit.diagnose.explain.test_explain import UNITS


class RoomTest(testtools.TestCase):
    def test_slots(self):
        tree = [{"PCPU": {"total": 20}, const.RC_SLOT: {"total": 1, "max_unit": 1}}, {}]
        specs = {"hw:cpu_policy": "dedicated", f"resources:{const.RC_SLOT}": "1"}
        self.assertEqual(1, inventories.room(tree, specs, 2))
        # They may be those of a smaller class.
        tree[0][const.RC_SLOT]["total"] = 4
        self.assertEqual(2, inventories.room(tree, specs, 2))
        self.assertEqual(0, inventories.room([{"VCPU": {}}], specs, 2))

    def test_units(self):
        specs = {f"resources:{const.RC_UNIT}": str(const.UNITS_PER_CHILD)}
        for slots in (0, 1, 2):
            tree = [{"PCPU": {"total": 20}}] + [
                {n: {"total": i.total, "max_unit": i.max_unit}}
                for child in units.children_named(UNITS, "host", slots)
                for n, i in child.inventories.items()
            ]
            self.assertEqual(slots, inventories.room(tree, specs, 2))

    def test_cells(self):
        """As many as fit each, by CPUs and by memory."""
        amounts = {const.RC_CELL_CPU: 8, const.RC_CELL_MEMORY: 4096}
        specs = {f"resources_a:{name}": str(n) for name, n in amounts.items()}
        cells = (
            {const.RC_CELL_CPU: 20, const.RC_CELL_MEMORY: 99999},
            {const.RC_CELL_CPU: 20, const.RC_CELL_MEMORY: 5000},
        )
        tree = [{"PCPU": {"total": 40, "max_unit": 40}}] + [
            {name: {"total": n, "max_unit": n} for name, n in cell.items()}
            for cell in cells
        ]
        self.assertEqual(3, inventories.room(tree, specs, 40))

    def test_placement_knows_nothing(self):
        left_over = [{const.RC_SLOT: {"total": 1, "max_unit": 1}}]
        self.assertEqual(2, inventories.room(left_over, {}, 2))
