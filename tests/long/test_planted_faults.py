# SPDX-License-Identifier: Apache-2.0
"""No fault of :mod:`tests.unit.measure.prove.planted` is certified."""

from nova_perfvm.findings import Level
from nova_perfvm.measure.prove.inputs import InputsError
from tests.directory import DirectoryCase
from tests.unit.measure.prove import planted
from tests.unit.measure.prove.sound import Case


class PlantedFaultsTest(DirectoryCase):
    def test_no_fault_is_certified_and_each_is_named(self):
        self.assertGreater(len(planted.BY_NAME), 300)
        missed = []
        for fault in planted.BY_NAME.values():
            case = Case()
            fault.plant(case)
            try:
                judged, record = case.made(self.directory)
            except InputsError as exc:
                if fault.code not in str(exc):
                    missed.append((fault.name, str(exc)))
                continue
            codes = {one.code for one in judged.reasons}
            certified = judged.level is Level.OK or record["verdict"] == "certified"
            if certified or fault.code not in codes:
                missed.append((fault.name, judged.level, fault.code, codes))
        self.assertEqual([], missed)
