# SPDX-License-Identifier: Apache-2.0
"""How dense the fullest of some hosts is, by Placement's books."""

import testtools

from nova_perfvm.changes.migrations.density import of_fullest
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.snapshot import Inventory
from tests.unit.facts.snapshot.clouds import Cloud

MEMORY = Inventory(100_000, 100_000, reserved=20_000, allocation_ratio=1.5)


class DensityTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        for name in ("g1", "g2"):
            self.cloud.add_host(name, "shared")
            vcpus = Inventory(40, 40, allocation_ratio=4.0)
            self.cloud.change_inventories(name, VCPU=vcpus, MEMORY_MB=MEMORY)

    def said(self):
        return list(of_fullest(views_of(self.cloud.snapshot())))

    def test_vcpus_or_memory(self):
        self.cloud.allocate("a", "g1", {"VCPU": 80, "MEMORY_MB": 12_000})
        of_g1 = (
            "the fullest target afterwards is g1: 80 of 40 VCPU (2 for each CPU, "
            "allocation ratio 4), 12000 of 100000 MEMORY_MB (allocation ratio 1.5)"
        )
        self.assertEqual([of_g1], self.said())
        # 60,000 of 120,000 is as much as 80 of 160.
        self.cloud.allocate("b", "g2", {"VCPU": 1, "MEMORY_MB": 60_001})
        (said,) = self.said()
        self.assertIn("afterwards is g2: 60001 of 100000 MEMORY_MB", said)

    def test_nobody_goes_anywhere(self):
        self.assertEqual([], list(of_fullest(())))

    def test_a_host_with_a_pool_that_is_all_reserved(self):
        none = Inventory(100, 100, reserved=100)
        for name in ("g1", "g2"):
            self.cloud.change_inventories(name, VCPU=none, MEMORY_MB=none)
        (said,) = self.said()
        self.assertIn("0 of 100 VCPU", said)
