# SPDX-License-Identifier: Apache-2.0
"""The filter turned off, and on again, while VMs come and go."""

from nova import conf as nova_conf

from tests.functional import base


class TestObserve(base.FunctionalTest):
    def mode(self, mode):
        nova_conf.CONF.set_override("mode", mode, group="perfvm")
        self.addCleanup(nova_conf.CONF.clear_override, "mode", group="perfvm")

    def test_it_says_what_it_would_refuse_and_refuses_nothing(self):
        for name in ("h1", "h2"):
            self.cloud.start_host(name, shared="0-39")
        self.cloud.label_hosts("high-performance", "h1", "h2")
        self.assert_reason(self.boot_refused(base.GENERAL_2), "host.class_reserved")

        self.mode("observe")
        server = self.boot(base.GENERAL_2)
        (line,) = self.cloud.log.lines(server.id)
        self.assertIn("would reject 2 of 2 hosts", line)
        self.assertIn("2 host.class_reserved", line)
        self.servers.cold_migrate(server)

        self.mode("enforce")
        self.assert_reason(self.boot_refused(base.GENERAL_2), "host.class_reserved")
