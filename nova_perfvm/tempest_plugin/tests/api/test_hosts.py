# SPDX-License-Identifier: Apache-2.0
"""The VMs that one host takes and refuses."""

from tempest.lib import decorators

from nova_perfvm.tempest_plugin.tests import base


class HostsTest(base.PerfVMTest):
    @decorators.idempotent_id("c8de2d9f-b1d3-4fac-9072-8630696a3721")
    def test_cap(self):
        """A host takes max_per_host VMs, no more, and another one after a deletion."""
        host, servers = self.fill()
        self.boot_refused(self.high_performance, host)
        self.delete(servers[0])
        servers[0] = self.boot(self.high_performance, host)["id"]
        self.boot_refused(self.high_performance, host)

    @decorators.idempotent_id("7a0ded1b-1b40-4edf-82f9-24d91092d675")
    def test_topology(self):
        """Each VM is on one NUMA node, each vCPU on a CPU of its own."""
        _, servers = self.fill()
        self.assert_disjoint(servers)

    @decorators.idempotent_id("b7fd0a60-571a-46f6-b384-f64698282d1d")
    def test_general_off_high_performance(self):
        self.need_exclusive_hosts()
        host, server = self.boot_on_empty_host(self.high_performance)
        self.boot_refused(self.general, host)
        self.assertEqual([server["id"]], [s["id"] for s in self.servers_of(host)])

    @decorators.idempotent_id("663a8a6b-017c-4c0a-86a5-352a0db4ccff")
    def test_high_performance_off_general(self):
        self.need_exclusive_hosts()
        host, server = self.boot_on_empty_host(self.general)
        self.boot_refused(self.high_performance, host)
        # The host still takes VMs of the general class.
        other = self.boot(self.general, host)
        self.assertEqual(
            {server["id"], other["id"]}, {s["id"] for s in self.servers_of(host)}
        )
