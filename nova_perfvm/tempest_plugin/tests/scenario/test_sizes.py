# SPDX-License-Identifier: Apache-2.0
"""Pinned VMs of several sizes share a host, each on its allocation's NUMA node."""

from tempest import config
from tempest.lib import decorators

from nova_perfvm import constants as const
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.tempest_plugin.tests import base

CONF = config.CONF


class SizesTest(base.PerfVMTest):
    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not SCHEMES[CONF.perfvm.placement].mixes:
            raise cls.skipException(
                f"[perfvm]placement is {CONF.perfvm.placement}: a host serves one size"
            )
        if not CONF.perfvm.high_performance_flavor_alt:
            raise cls.skipException(
                "[perfvm]high_performance_flavor_alt is unset: the test needs two sizes"
            )

    def _need_two_nodes(self, host):
        """Skip unless a node takes two small VMs, but no large VM beside them."""
        found = [tree.get(const.RC_CELL_CPU) for tree in self.tree_of(host)]
        cpus = [inventory["total"] for inventory in found if inventory]
        small, large = (
            self.flavor_of[CONF.perfvm[name]]["vcpus"]
            for name in ("high_performance_flavor_alt", "high_performance_flavor")
        )
        if len(cpus) < 2 or not 2 * small <= min(cpus) <= max(cpus) < 2 * small + large:
            raise self.skipException(
                f"{host} has NUMA nodes of {cpus} CPUs: the test needs two nodes that "
                f"fit two VMs of {small} vCPUs, but no VM of {large} beside them"
            )

    @decorators.idempotent_id("5c8a4d3e-2f0b-4b7c-9f21-6f6d0a1e7b94")
    def test_small_ones_leave_a_node_to_large_ones(self):
        """Two small VMs share a node; plain Nova would spread them over both nodes."""
        small = self._flavor("high_performance_flavor_alt")
        host, first = self.boot_on_empty_host(small)
        self._need_two_nodes(host)
        second = self.boot(small, host)
        nodes = {self.assert_pinned(server["id"])[0] for server in (first, second)}
        self.assertEqual(1, len(nodes), "expected both VMs on the fuller node")
        large = self.boot(self.high_performance, host)
        self.assertNotIn(self.assert_pinned(large["id"])[0], nodes)
        self.assert_disjoint([server["id"] for server in (first, second, large)])
