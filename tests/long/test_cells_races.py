# SPDX-License-Identifier: Apache-2.0
"""Longer storms of VMs of mixed sizes, and the same on Nova by itself."""

import os

from tests.storm import test_cells_races

ROUNDS = int(os.environ.get("PERFVM_CELLS_ROUNDS", "10"))


class TestCells(test_cells_races.CellsStorm, test_cells_races.cells.CellsCloud):
    PATIENCE = 12

    def test_no_claim_fails(self):
        self.storm(ROUNDS)
        self.assert_good()


class TestStock(test_cells_races.CellsStorm, test_cells_races.cells.StockCloud):
    PATIENCE = 12

    def test_claims_fail(self):
        self.storm(ROUNDS)
        self.assertNotEqual([], self.offers.failed)
