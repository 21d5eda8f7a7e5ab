# SPDX-License-Identifier: Apache-2.0
"""Allocations of VMs in Placement."""

from tempest import config
from tempest.lib import decorators

from nova_perfvm import constants as const
from nova_perfvm.placement.host_schemes import HOST_SCHEMES
from nova_perfvm.placement.schemes import SCHEMES
from nova_perfvm.tempest_plugin.tests import base

CONF = config.CONF


class AllocationsTest(base.PerfVMTest):
    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not SCHEMES[CONF.perfvm.placement].counts:
            raise cls.skipException(
                f"[perfvm]placement is {CONF.perfvm.placement}: Placement counts no "
                "classes"
            )

    @decorators.idempotent_id("bdedfdde-9175-4bde-bc5b-4fd54cd58865")
    def test_high_performance(self):
        """A VM takes a slot, or all units of a child that no other VM takes."""
        scheme = SCHEMES[CONF.perfvm.placement]
        if scheme.mixes:
            raise self.skipException(
                f"[perfvm]placement is {scheme.name}: VMs take parts of NUMA nodes"
            )
        resource, units = scheme.resource_class, HOST_SCHEMES[scheme.name].by_slots
        _, servers = self.fill()
        providers = set()
        for server_id in servers:
            ((provider, amount),) = self.allocated(server_id, resource).items()
            whole = self.inventories_of(provider)[resource]["total"]
            self.assertEqual(whole if units else 1, amount)
            providers.add(provider)
        self.assertEqual(len(servers) if units else 1, len(providers))

    @decorators.idempotent_id("e78f3091-4771-40d7-a00b-cb8b550e396f")
    def test_general(self):
        """A general VM takes no slot, but one unit of each child."""
        _, server = self.boot_on_empty_host(self.general)
        self.assertEqual({}, self.allocated(server["id"], const.RC_SLOT))
        units = self.allocated(server["id"], const.RC_UNIT)
        if HOST_SCHEMES[CONF.perfvm.placement].by_slots:
            self.assertGreaterEqual(len(units), CONF.perfvm.max_per_host)
        self.assertEqual(dict.fromkeys(units, 1), units)
