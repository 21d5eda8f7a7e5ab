# SPDX-License-Identifier: Apache-2.0
"""A few random operations on VMs of mixed sizes; tests/random has a thousand."""

from tests.operations import cells

STEPS, SEED = 20, 1


class TestCells(cells.CellsCloud):
    HOSTS = cells.CellsCloud.HOSTS[:2]

    def test_no_offer_is_in_vain(self):
        cells.CellsRun(self, STEPS, SEED)()
        self.assertGreater(self.offers.offered, 0)
