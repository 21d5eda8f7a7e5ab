# SPDX-License-Identifier: Apache-2.0
"""No fault of :mod:`tests.unit.measure.certify.faults` is certified."""

import pathlib

import fixtures
import testtools

from nova_perfvm.measure.certify.inputs import InputsError
from nova_perfvm.measure.certify.judge import Certification
from tests.unit.measure.certify import faults
from tests.unit.measure.certify.sound import Case


class PlantedFaultsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def assert_named(self, name):
        """Assert that no fault of a group is certified, and each is named."""
        missed = []
        for fault in faults.GROUPS[name]:
            case = Case()
            fault.plant(case)
            try:
                judged, record = case.made(self.directory)
            except InputsError as exc:
                if fault.code not in str(exc):
                    missed.append((fault.name, str(exc)))
                continue
            codes = {one.code for one in judged.reasons}
            certified = Certification.CERTIFIED.value in {
                *(judged.verdict.value, record["verdict"])
            }
            if certified or fault.code not in codes:
                missed.append((fault.name, judged.verdict, fault.code, codes))
        self.assertEqual([], missed)

    def test_without_a_fault(self):
        judged, record = Case().made(self.directory)
        self.assertEqual((), judged.reasons)
        self.assertEqual("certified", record["verdict"])

    def test_there_are_enough_and_each_is_another(self):
        names = [fault.name for group in faults.GROUPS.values() for fault in group]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 200)

    def test_pins(self):
        self.assert_named("pins")

    def test_memory(self):
        self.assert_named("memory")

    def test_vms(self):
        self.assert_named("vms")

    def test_hosts(self):
        self.assert_named("hosts")

    def test_guests(self):
        self.assert_named("guests")

    def test_together(self):
        self.assert_named("together")

    def test_measured(self):
        self.assert_named("measured")

    def test_policies(self):
        self.assert_named("policies")

    def test_files(self):
        self.assert_named("files")
