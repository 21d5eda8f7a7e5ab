# SPDX-License-Identifier: Apache-2.0
"""Children that go while nova-compute has them in its cache of providers.

It reads the tree of its host again only every five minutes, and asks Placement for the
allocations of each provider in it whenever it reports: before it builds a guest, and
after one has gone.
"""

import dataclasses
import functools

from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.cloud import apply, converge, live_hosts
from nova_perfvm.policy import Elastic
from tests.functional import base, minutes
from tests.functional.elastic import PLAIN_GENERAL, ElasticTest

HOSTS = ("h1", "h2")
GENERAL_4 = "g.4c.8g"
LARGER = "plain-larger"


class TestProviderCache(ElasticTest):
    FLAVORS = (base.HP_64, base.GENERAL_2, GENERAL_4)

    def setUp(self):
        super().setUp()
        self.create_plain_flavors()
        self.cloud.create_flavor(LARGER, 4, 8192, 40)
        for host in HOSTS:
            self.cloud.start_host(host)

    def start(self, policy):
        """Enroll the hosts; let each compute know the children, as in five minutes."""
        planner = functools.partial(plan_enroll, policy, backfill=True)
        for host in HOSTS:
            converge.change_host(self.api, host, planner)
            self.cloud.restart_host(host)

    def report(self):
        """Let the computes report to Placement, and look that they always could."""
        self.cloud.run_periodics()
        failed = "ResourceProviderAllocationRetrievalFailed"
        self.assertNotIn(failed, self.cloud.nova_log())

    def reboot(self, server):
        self.servers.act(server, {"reboot": {"type": "HARD"}}, "ACTIVE")

    def walk(self, flavor, larger):
        """Do with VMs what their owners and operators do."""
        self.report()
        first, second = (self.boot(flavor, host=host) for host in HOSTS)
        first = self.servers.confirm(self.servers.resize(first, larger))
        self.reboot(first)
        moved = self.servers.live_migrate(first)
        moved = self.servers.confirm(self.servers.cold_migrate(moved))
        moved = self.servers.unshelve(self.servers.shelve(moved))
        self.servers.delete(moved)
        self.servers.delete(second)
        self.report()

    def detached(self):
        return [child.name for child in live_hosts.detached_children(self.api)]

    def test_fewer_children(self):
        server = self.boot_before(PLAIN_GENERAL, host="h1")
        self.start(dataclasses.replace(self.policy, elastic=Elastic(4)))
        self.assertEqual(4, len(self.units("h1")))
        for host in HOSTS:
            self.enroll(host, backfill=True)
            self.assert_elastic(host)
        self.walk(base.GENERAL_2, GENERAL_4)
        self.reboot(server)

        # Nova must not be imported before the embedded cloud has prepared it.
        from nova import conf

        refresh_s = conf.CONF.compute[minutes.REFRESH]
        self.assertGreaterEqual(apply.FORGOTTEN_S, refresh_s + 60)
        self.useFixture(minutes.TreesAreReadAgain())
        for host in HOSTS:
            self.assertEqual(2, self.enroll(host, delete_children=True))
            self.assert_elastic(host)
        self.assertEqual([], self.detached())
        self.report()
        self.servers.delete(server)
        self.report()
