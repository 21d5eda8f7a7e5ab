# SPDX-License-Identifier: Apache-2.0
"""VMs of a class's former size on elastic hosts, and moves of them on any."""

from tests.functional.elastic import ElasticTest
from tests.functional.test_former_sizes import NEW, OLD, SizeCase, SlotsCase


class MovesMixin:
    def test_moves(self):
        old = self.boot(OLD, host="hp1")
        self.change_policy([20])
        # The node beside it is not lost; and two VMs are two, whatever their size.
        here = self.boot(NEW, host="hp1")
        self.assert_on("hp1", [20, 18], old, here)
        self.boot_refused(NEW, host="hp1")
        there = self.boot(NEW, host="hp2")

        moved = self.servers.confirm(self.servers.cold_migrate(old))
        self.assert_on("hp2", [18, 20], there, moved)

        # A VM that has left is counted until the compute's next audit.
        self.cloud.run_periodics()
        moved = self.servers.live_migrate(moved)
        self.assert_on("hp1", [18, 20], here, moved)

        shelved = self.servers.shelve(moved)
        self.cloud.run_periodics()
        moved = self.servers.unshelve(shelved, "hp2")
        self.assert_on("hp2", [18, 20], there, moved)

        self.cloud.run_periodics()
        self.cloud.fail_host("hp2")
        moved = self.servers.evacuate(moved)
        self.assert_on("hp1", [18, 20], here, moved)


class TestSlots(MovesMixin, SlotsCase):
    """Hosts whose VMs Placement counts."""


class TestUnits(MovesMixin, SizeCase, ElasticTest):
    """Elastic hosts: a VM of either size takes a child provider."""

    def setUp(self):
        super().setUp()
        for name in ("hp1", "hp2"):
            self.cloud.start_host(name)
            self.enroll(name)
