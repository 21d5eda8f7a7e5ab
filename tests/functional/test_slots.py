# SPDX-License-Identifier: Apache-2.0
"""Placement alone keeps the cap and the classes apart: no filter of ours."""

import functools

from nova import exception

from nova_perfvm import constants as const
from tests.embedded import FILTERS_WITHOUT_PERFVM, ActionFailedError
from tests.functional import base


class SlotsCase(base.FunctionalTest):
    CLOUD = {"enabled_filters": FILTERS_WITHOUT_PERFVM}  # noqa: RUF012
    PLACEMENT = "slots"

    def start(self, name, mode="dedicated", **requested):
        return self.cloud.start_configured(name, self.policy, mode, **requested)

    def active(self, servers):
        return [server for server in servers if server.status == "ACTIVE"]


class TestCap(SlotsCase):
    """Hosts of 4 x 20 CPUs: room for four VMs, capped at two."""

    def setUp(self):
        super().setUp()
        self.start("hp1", shape="4x20", memory_gb=1000)

    def test_at_once_or_forced(self):
        self.assertEqual(
            ["ERROR"] * 3,
            [server.status for server in self.cloud.boot(base.HP_64, count=3)],
        )
        # Nothing of it is left behind.
        self.assertEqual(0, self.cloud.usages("hp1")[const.RC_SLOT])

        servers = self.active(self.cloud.boot_at_once([base.HP_64] * 3))
        self.assertEqual(2, len(servers))
        self.assert_apart(*servers)
        server = self.cloud.boot(base.HP_64, az="nova:hp1")
        self.assertEqual("ERROR", server.status)

        self.start("hp2", shape="4x20", memory_gb=1000)
        server = self.boot()
        self.assertEqual("hp2", server.host)
        self.assert_not_forced(self.servers.live_migrate, server)
        self.cloud.fail_host("hp2")
        self.assert_not_forced(self.servers.evacuate, server)

    def assert_not_forced(self, move, server):
        error = self.assertRaises(ActionFailedError, move, server, "hp1", force=True)
        self.assertEqual("hp2", error.server.host)
        self.assertIn("not enough capacity", error.detail)
        self.assertEqual(2, self.cloud.usages("hp1")[const.RC_SLOT])

    def test_slots_outlive_periodic_tasks_and_restarts(self):
        server = self.boot()
        restart = functools.partial(self.cloud.restart_host, "hp1")
        for change in (self.cloud.run_periodics, restart):
            change()
            self.assertEqual(2, self.cloud.capacity("hp1")[const.RC_SLOT])
            self.assertEqual(1, self.cloud.usages("hp1")[const.RC_SLOT])
            self.assertIn(const.TRAIT_HIGH_PERFORMANCE, self.cloud.traits("hp1"))

        # No compute starts without the slots that are in use.
        error = self.assertRaises(
            exception.PlacementPciException, restart, provider_yaml=None
        )
        self.assertIn("in use", str(error))
        self.assertEqual("ACTIVE", self.servers.show(server).status)

    def test_the_trait_outlives_the_slots(self):
        self.cloud.restart_host("hp1", provider_yaml=None)

        self.assertNotIn(const.RC_SLOT, self.cloud.capacity("hp1"))
        # An operator has to take it off before general VMs come.
        self.assertIn(const.TRAIT_HIGH_PERFORMANCE, self.cloud.traits("hp1"))


class TestMoves(SlotsCase):
    FLAVORS = (base.HP_64, base.HP_128)

    def setUp(self):
        super().setUp()
        self.start("hp1")
        self.start("hp2")

    def assert_slots(self, **used):
        self.assertEqual(
            used, {host: self.cloud.usages(host)[const.RC_SLOT] for host in used}
        )

    def test_a_slot_follows_its_vm(self):
        server = self.boot(host="hp1")
        self.assert_slots(hp1=1, hp2=0)

        moved = self.servers.cold_migrate(server)
        self.assert_slots(hp1=1, hp2=1)  # held until it is confirmed
        self.servers.confirm(moved)
        self.assert_slots(hp1=0, hp2=1)

        moved = self.servers.live_migrate(moved, "hp1")
        self.assert_slots(hp1=1, hp2=0)

        shelved = self.servers.shelve(moved)
        self.assert_slots(hp1=0, hp2=0)
        moved = self.servers.unshelve(shelved, "hp2")
        self.assert_slots(hp1=0, hp2=1)

        resized = self.servers.resize(moved, base.HP_128)
        self.assert_slots(hp1=1, hp2=1)
        self.servers.revert(resized)
        self.assert_slots(hp1=0, hp2=1)


class TestClasses(SlotsCase):
    """General VMs stay off hosts with slots, by trait."""

    def start_with_slots_for_general(self):
        """Start a host that has both kinds of CPUs, and offers slots."""
        self.start("donor")
        yaml = self.cloud._settings["donor"].provider_yaml
        self.cloud.start_host(
            "both", dedicated="0-19", shared="20-39", provider_yaml=yaml
        )

    def assert_plain(self, flavor):
        """Judge what becomes of a flavor that does not forbid the trait."""
        self.assertEqual("both", self.boot(flavor).host)

    def test_flavors(self):
        # High-performance ones need the trait.
        self.cloud.start_host("plain", dedicated="0-39")
        self.boot_refused()

        self.start_with_slots_for_general()
        self.boot_refused(base.GENERAL_2)
        self.boot_refused(base.GENERAL_2, az="nova:both")
        self.assert_plain(self.cloud.create_flavor("plain", 2, 2048, 10))

        self.start("general1", "shared")
        self.assertEqual("general1", self.boot(base.GENERAL_2).host)


class TestIsolatedAggregate(TestClasses):
    """Where general flavors cannot be changed: the aggregate names the trait."""

    CLOUD = SlotsCase.CLOUD | {
        "options": {("scheduler", "enable_isolated_aggregate_filtering"): True}
    }

    def start_with_slots_for_general(self):
        super().start_with_slots_for_general()
        self.cloud.aggregate_hosts(
            {f"trait:{const.TRAIT_HIGH_PERFORMANCE}": "required"}, "both", "donor"
        )

    def assert_plain(self, flavor):
        self.boot_refused(flavor)
        self.boot_refused(flavor, az="nova:both")
