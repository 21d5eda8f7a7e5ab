# SPDX-License-Identifier: Apache-2.0
"""Requests that name a host, and requests for several VMs."""

from tests.functional import base


class TestNamedHost(base.FunctionalTest):
    def setUp(self):
        super().setUp()
        self.cloud.start_host("smt1", "2x20x2", dedicated="0-79")
        self.cloud.start_host("smt2", "2x20x2", dedicated="0-79")

    def test_forced_host_is_not_judged(self):
        """One that is named is."""
        # Two of these hosts' four times 20 CPUs: only the filter refuses.
        self.assert_apart(self.boot(host="smt2"), self.boot(host="smt2"))
        server = self.boot_refused(host="smt2")
        self.assert_reason(server, "rejected 1 of 1 hosts")
        self.assert_reason(server, "1 host.no_free_slot")
        self.assertEqual("smt1", self.boot().host)

        # zone:host skips every filter; the audit is for that.
        server = self.boot(az="nova:smt2")
        self.assertEqual("smt2", server.host)
        self.assertEqual([], self.cloud.verdicts(server))


class TestSeveral(base.FunctionalTest):
    def test_two_fill_a_host(self):
        self.cloud.start_host("hp1", dedicated="0-39")

        servers = self.cloud.boot(base.HP_64, count=2)

        self.assertEqual(["ACTIVE"] * 2, [server.status for server in servers])
        self.assert_apart(*servers)

    def test_as_many_as_there_are_slots(self):
        self.cloud.start_host("smt1", "2x20x2", dedicated="0-79")
        self.cloud.start_host("smt2", "2x20x2", dedicated="0-79")

        # 160 CPUs in all, so Placement and Nova would place all five.
        servers = self.cloud.boot(base.HP_64, count=5)
        self.assertEqual(["ERROR"] * 5, [server.status for server in servers])
        servers = self.cloud.boot(base.HP_64, count=4)

        for host in ("smt1", "smt2"):
            here = [server for server in servers if server.host == host]
            self.assertEqual(2, len(here))
            self.assert_apart(*here)
