# SPDX-License-Identifier: Apache-2.0
"""Moves of high-performance VMs: each ends pinned, or is refused."""

from tests.embedded import ActionFailedError
from tests.functional import base


class TestMoves(base.FunctionalTest):
    """Two high-performance hosts."""

    def setUp(self):
        super().setUp()
        self.cloud.start_host("hp1", dedicated="0-39")
        self.cloud.start_host("hp2", dedicated="0-39")

    def assert_moved(self, server, host="hp2"):
        self.assertEqual(host, server.host)
        return self.assert_high_performance(server)

    def assert_usage(self, **pcpus):
        used = {host: self.cloud.usages(host)["PCPU"] for host in pcpus}
        self.assertEqual(pcpus, used)

    def test_migrations(self):
        there, server = self.boot(host="hp2"), self.boot(host="hp1")
        before = self.cloud.guest(server)
        self.assertEqual({0}, before.host_nodes)

        # Which finds the free node.
        moved = self.servers.cold_migrate(server)
        self.assert_apart(there, moved)
        self.assert_usage(hp1=20, hp2=40)
        reverted = self.servers.revert(moved)
        self.assertEqual("hp1", reverted.host)
        self.assertEqual(before.pins, self.assert_high_performance(reverted).pins)
        self.assert_usage(hp1=20, hp2=20)
        confirmed = self.servers.confirm(self.servers.cold_migrate(server))
        self.assert_moved(confirmed)
        self.assert_usage(hp1=0, hp2=40)

        self.cloud.run_periodics()
        self.assert_moved(self.servers.live_migrate(server, "hp1"), "hp1")
        self.cloud.run_periodics()
        moved = self.servers.live_migrate(server)
        # The pins are worked out anew: on hp2, node 0 is taken.
        self.assertEqual({1}, self.assert_moved(moved).host_nodes)
        self.assert_apart(there, moved)
        self.assert_usage(hp1=0, hp2=40)

    def test_rebuild_and_evacuation(self):
        there, server = self.boot(host="hp2"), self.boot(host="hp1")
        before = self.cloud.guest(server)
        image = self.cloud.create_image(hw_vif_multiqueue_enabled="true")

        rebuilt = self.servers.rebuild(server, image)

        self.assertEqual("hp1", rebuilt.host)
        self.assertEqual(before.pins, self.assert_high_performance(rebuilt).pins)
        # Also where the host is full.
        other = self.boot(host="hp1")
        self.servers.rebuild(other, self.cloud.create_image())
        self.assert_apart(server, other)
        self.cloud.restart_host("hp1")
        self.assert_apart(server, other)
        self.boot_refused(host="hp1")

        self.cloud.fail_host("hp1")
        moved = self.servers.evacuate(server)
        self.assert_moved(moved)
        self.assert_apart(there, moved)

    def test_shelve_and_unshelve(self):
        server = self.boot(host="hp1")

        shelved = self.servers.shelve(server)
        self.assertEqual(("SHELVED_OFFLOADED", None), (shelved.status, shelved.host))
        self.assert_usage(hp1=0, hp2=0)

        self.assert_moved(self.servers.unshelve(shelved, "hp2"))
        self.assert_usage(hp1=0, hp2=20)

        # Its slot is given away.
        shelved = self.servers.shelve(server)
        # The pins of a shelved VM stay in the host's report until the
        # compute's next audit.
        self.cloud.run_periodics()
        for _ in range(4):
            self.boot()
        error = self.assertRaises(ActionFailedError, self.servers.unshelve, shelved)
        self.assertIn("No valid host", error.detail)
        self.assertEqual("SHELVED_OFFLOADED", self.servers.show(server).status)


class TestResize(base.FunctionalTest):
    FLAVORS = (base.HP_64, base.HP_128, base.GENERAL_2)

    def setUp(self):
        super().setUp()
        self.cloud.start_host("hp1", dedicated="0-39")

    def test_to_more_memory(self):
        self.cloud.start_host("hp2", dedicated="0-39")
        self.cloud.create_flavor("hp-16", 16, 65536, 0, base.CLAIMS_HP)
        server = self.boot(host="hp1")

        # Not of its class
        self.assertRaises(ActionFailedError, self.servers.resize, server, "hp-16")
        self.assert_reason(server, "flavor.vcpus")
        self.assertEqual(("ACTIVE", base.HP_64), self._status_and_flavor(server))

        reverted = self.servers.revert(self.servers.resize(server, base.HP_128))
        self.assert_high_performance(reverted)
        self.assertEqual((base.HP_64, "hp1"), (reverted.flavor, reverted.host))

        resized = self.servers.resize(server, base.HP_128)
        self.assert_high_performance(resized)
        confirmed = self.servers.confirm(resized)
        self.assert_high_performance(confirmed)
        self.assertEqual((base.HP_128, "hp2"), (confirmed.flavor, confirmed.host))

    def test_to_the_other_class_and_back(self):
        self.cloud.start_host("general1", shared="0-39")
        server = self.boot()
        # A flavor with a root disk of its own is no target for a volume.
        specs = {"hw:cpu_policy": "shared", "perfvm:class": "general"}
        self.cloud.create_flavor("general-volume", 2, 4096, 0, specs)

        general = self.servers.resize(server, "general-volume")
        self.assertEqual("general1", general.host)
        self.assert_general(self.servers.confirm(general))

        self.cloud.run_periodics()
        back = self.servers.resize(general, base.HP_64)
        self.assertEqual("hp1", back.host)
        self.assert_high_performance(self.servers.confirm(back))

    def _status_and_flavor(self, server):
        shown = self.servers.show(server)
        return shown.status, shown.flavor


class TestRefusedMoves(base.FunctionalTest):
    """Placement would let both classes onto these hosts, the filter does not."""

    CLOUD = {"disable_fallback_pcpu_query": False}  # noqa: RUF012

    def setUp(self):
        super().setUp()
        self.cloud.start_host("open1")
        self.cloud.start_host("open2")
        self.server = self.boot(host="open1")
        self.other = self.boot(base.GENERAL_2, host="open2")

    def assert_stays(self, move, server, *args):
        before = self.servers.show(server)
        error = self.assertRaises(ActionFailedError, move, server, *args)
        self.assertIn("No valid host", error.detail)
        self.assert_reason(server, "1 host.class_conflict")
        self.assertEqual(before.host, self.servers.show(server).host)

    def test_migrations_and_evacuation(self):
        for move, server, *host in (
            (self.servers.cold_migrate, self.server),
            (self.servers.cold_migrate, self.server, "open2"),
            (self.servers.live_migrate, self.server),
            (self.servers.live_migrate, self.other, "open1"),
        ):
            self.assert_stays(move, server, *host)
        self.cloud.fail_host("open1")
        self.assert_stays(self.servers.evacuate, self.server)

    def test_unshelve(self):
        shelved = self.servers.shelve(self.server)
        self.cloud.run_periodics()
        self.boot(base.GENERAL_2, host="open1")

        error = self.assertRaises(ActionFailedError, self.servers.unshelve, shelved)

        self.assertIn("No valid host", error.detail)
        self.assert_reason(shelved, "2 host.class_conflict")
