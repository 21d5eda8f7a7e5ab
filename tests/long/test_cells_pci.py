# SPDX-License-Identifier: Apache-2.0
"""PCI devices under ``placement: cells``: every NUMA policy and every way to move."""

import itertools

from tests.embedded import ActionFailedError
from tests.functional import test_cells_pci
from tests.functional.test_cells_pci import with_device
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
    """Of two devices on a node, those that nova-compute will claim are allocated."""

    DEVICES = {"h1": (0, 0), "h2": (1, 1)}  # noqa: RUF012
    IN_PLACEMENT = True


class TestAliasPrefers(test_cells_pci.TestFullNodes):
    """An alias with the policy of the flavor lets VMs move to where they may start."""

    ALIAS_POLICY = "preferred"

    def test_no_move_breaks_a_server(self):
        server = self.boot(with_device("preferred"), host="h1")
        status, states, said = self.plan()
        self.assertEqual((0, ["done"]), (status, states), said)
        self.assert_kept(server, "h2", 0, near=False)
        self.cloud.run_periodics()
        # The flavor's policy counts as well.
        strict = self.boot(with_device("required"), host="h1")
        error = self.assertRaises(
            ActionFailedError, self.servers.cold_migrate, strict, "h2"
        )
        self.assertIn("No valid host", error.detail)


class TestOrderInPlacement(test_cells_pci.TestOrder):
    IN_PLACEMENT = True


class TestAgreement(test_cells_pci.TestAgreement):
    PATIENCE = 6
    ROUNDS = tuple(itertools.product(POLICIES, POLICIES))


class TestAgreementInPlacement(TestAgreement):
    IN_PLACEMENT = True
