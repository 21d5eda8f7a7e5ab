# SPDX-License-Identifier: Apache-2.0
"""PCI devices under ``placement: cells``: every NUMA policy and every way to move."""

import itertools

from tests.functional import test_cells_pci
from tests.functional.test_pci import POLICIES


class TestMoves(test_cells_pci.MovesCase):
    PATIENCE = 3

    def test_required(self):
        self.move("required")

    def test_preferred(self):
        self.move("preferred")

    def test_legacy(self):
        self.move("legacy")

    def test_socket(self):
        self.move("socket")


class TestMovesInPlacement(TestMoves):
    DEVICES = test_cells_pci.TestMovesInPlacement.DEVICES
    IN_PLACEMENT = True


class TestAgreement(test_cells_pci.TestAgreement):
    PATIENCE = 6
    ROUNDS = tuple(itertools.product(POLICIES, POLICIES))


class TestAgreementInPlacement(TestAgreement):
    IN_PLACEMENT = True
