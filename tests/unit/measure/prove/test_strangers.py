# SPDX-License-Identifier: Apache-2.0
"""No stranger's fault is proven silently; each harmless variation is proven."""

from unittest import TestCase

from tests.unit.measure.prove import strangers
from tests.unit.measure.prove.sound import Case

# What a host without a fault is told, whose class promises IOPS.
FAULTLESS = {"hypervisor.io_limits"}


def _judged(edit):
    case = Case()
    edit(case)
    return case.judged()


class FaultsTest(TestCase):
    def test_no_fault_is_proven(self):
        """A fault is no proof, or a condition names it in the line of the verdict."""
        for name, edit in strangers.FAULTS.items():
            judged = _judged(edit)
            told = {one.code for one in judged.conditions} - FAULTLESS
            self.assertFalse(judged.proven and not told, name)


class VariationsTest(TestCase):
    def test_each_variation_is_proven(self):
        for name, edit in strangers.VARIATIONS.items():
            self.assertTrue(_judged(edit).proven, name)
