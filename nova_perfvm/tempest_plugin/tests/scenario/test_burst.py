# SPDX-License-Identifier: Apache-2.0
"""Concurrent requests for VMs of both classes."""

from concurrent.futures import ThreadPoolExecutor

from tempest import config
from tempest.lib import decorators

from nova_perfvm import constants as const
from nova_perfvm.tempest_plugin.tests import base

CONF = config.CONF


class BurstTest(base.PerfVMTest):
    @decorators.idempotent_id("2cf84fab-2d66-4ef5-b252-b7c41e58edd5")
    def test_mixed(self):
        """No rule is broken, and each refused server has Nova's message."""
        if not self.empty_hosts():
            raise self.skipException("no empty host: Nova may refuse all requests")
        each = 2 * CONF.perfvm.max_per_host + 1
        flavors = [self.high_performance, self.general] * each
        with ThreadPoolExecutor(max_workers=len(flavors)) as pool:
            servers = list(pool.map(self.create, flavors))
        settled = [self.wait(server, "ACTIVE") for server in servers]

        running = [server for server in settled if server["status"] == "ACTIVE"]
        self.assertNotEqual([], running, [s.get("fault") for s in settled])
        for server in settled:
            if server not in running:
                message = server["fault"]["message"]
                self.assertTrue(message.startswith(base.REFUSALS), message)

        name = self.flavor_of[CONF.perfvm.high_performance_flavor]["name"]
        for host in {base.host_of(server) for server in running}:
            here = [s for s in running if base.host_of(s) == host]
            if CONF.perfvm.exclusive == "host":
                classes = {
                    s["flavor"]["extra_specs"].get(const.CLASS_KEY) for s in here
                }
                self.assertEqual(1, len(classes), f"{host} has {classes}")
            pinned = [s["id"] for s in here if s["flavor"]["original_name"] == name]
            if pinned:
                self.assertLessEqual(len(pinned), self.room(host), host)
                self.assert_disjoint(pinned)
