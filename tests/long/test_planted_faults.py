# SPDX-License-Identifier: Apache-2.0
"""No fault of :mod:`tests.unit.measure.prove.planted` is proven."""

import testtools

from nova_perfvm.exceptions import PerfVMError
from tests.unit.measure.prove import planted
from tests.unit.measure.prove.sound import Case


class PlantedFaultsTest(testtools.TestCase):
    def test_no_fault_is_proven_and_each_is_named(self):
        self.assertGreater(len(planted.BY_NAME), 300)
        missed = []
        for fault in planted.BY_NAME.values():
            case = Case()
            fault.plant(case)
            try:
                judged = case.judged()
            except PerfVMError as exc:
                if fault.code not in str(exc):
                    missed.append((fault.name, str(exc)))
                continue
            codes = {one.code for one in judged.reasons}
            if judged.proven or fault.code not in codes:
                missed.append((fault.name, judged.level, fault.code, codes))
        self.assertEqual([], missed)
