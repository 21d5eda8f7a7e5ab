# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.facts.snapshot.pci import PCIPool, returned

CARD = {"vendor_id": "15b3", "product_id": "1018"}


class ReturnedTest(testtools.TestCase):
    def test_to_the_pool_of_its_kind_and_node(self):
        here = PCIPool(1, 0, {**CARD, "address": "0000:3b:00.0"})
        there, unplaced = PCIPool(2, 1, CARD), PCIPool(3, None, CARD)
        for device, expected in (
            (PCIPool(1, 0, CARD), [2, 2, 3]),
            (PCIPool(2, 1, CARD), [1, 4, 3]),
            (PCIPool(1, None, CARD), [1, 2, 4]),
            # No pool is of its node, or has its tags.
            (PCIPool(1, 2, CARD), [1, 2, 3, 1]),
            (PCIPool(1, 1, {**CARD, "product_id": "1019"}), [1, 2, 3, 1]),
        ):
            found = returned([here, there, unplaced], [device])
            self.assertEqual(expected, [pool.count for pool in found])
