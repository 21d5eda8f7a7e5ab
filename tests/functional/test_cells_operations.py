# SPDX-License-Identifier: Apache-2.0
"""A few operations on VMs of mixed sizes; tests/random has a thousand at random."""

from tests.operations import cells

STEPS, SEED = 20, 1


class TestCells(cells.CellsCloud):
    HOSTS = cells.CellsCloud.HOSTS[:2]

    def test_no_offer_is_in_vain(self):
        cells.CellsRun(self, STEPS, SEED)()
        self.assertGreater(self.offers.offered, 0)

    def test_claims_that_placement_does_not_know(self):
        """Beside a VM that was forced onto a host, what comes there fits."""
        specs = {
            "hw:cpu_policy": "dedicated",
            "trait:CUSTOM_PERFVM_CELLS": "required",
        }
        self.cloud.create_flavor("forced", 8, 8192, 0, specs)
        forced = self.boot("forced", az="nova:dedicated1")
        self.boot("hp.16c.64g", host="dedicated1")
        judge = self.new_judge()
        first, *others = judge.book_complaints(set())
        self.assertIn(f"id='{forced.id}'", first)
        self.assertEqual([], [text for text in others if "it should be" in text])
        self.boot_refused("hp.16c.64g", host="dedicated1")
        self.assertEqual([("hp.16c.64g", "dedicated1")], self.offers.refused)
        self.assertEqual([], self.offers.failed)

    def test_a_host_that_a_moved_vm_has_left(self):
        """nova-compute counts it until its next report, when Placement has room.

        What came by a move is no tracked instance yet, of which alone a deletion or an
        offload is counted at once (ResourceTracker.update_usage).
        """
        flavor = "hp.20c.80g"
        self.boot(flavor, host="dedicated2")
        for move, leave in (
            (self.cold_migrated, self.servers.delete),
            (self.servers.live_migrate, self.servers.shelve),
        ):
            server = self.boot(flavor, host="dedicated1")
            self.cloud.run_periodics()
            leave(move(server))
            refused = self.boot_refused(flavor, host="dedicated2")
            self.assert_reason(refused, "1 host.no_free_slot")
            self.cloud.run_periodics()
            self.servers.delete(self.boot(flavor, host="dedicated2"))
        self.assertEqual([(flavor, "dedicated2")] * 2, self.offers.refused)
        self.assertEqual([], self.offers.failed)

    def cold_migrated(self, server):
        return self.servers.confirm(self.servers.cold_migrate(server))
