# SPDX-License-Identifier: Apache-2.0
"""What becomes of slots without the weigher, and with its sign turned round."""

from tests.embedded import NOVA_WEIGHERS
from tests.functional import base
from tests.functional.test_weigher import WeigherTest


class TestNovaAlone(WeigherTest):
    CLOUD = WeigherTest.CLOUD | {"weight_classes": NOVA_WEIGHERS}

    def test_three_general_vms_leave_no_slot(self):
        self.assertEqual(3, len(set(self.hosts_of(*[base.GENERAL_2] * 3))))
        self.boot_refused()


class TestNegativeMultiplier(WeigherTest):
    """Signs are Nova's: negative spreads."""

    CLOUD = WeigherTest.CLOUD | {"options": {("perfvm", "weight_multiplier"): -1000.0}}

    def test_general_vms_break_up_every_host(self):
        self.assertEqual(3, len(set(self.hosts_of(*[base.GENERAL_2] * 3))))
