# SPDX-License-Identifier: Apache-2.0
"""A look at some hosts shows what a look at all does."""

from nova_perfvm.cloud.refresh import refresh
from nova_perfvm.cloud.snapshot import read_snapshot
from tests.functional.test_plan_execution import ThreeHostsCase


class TestRefresh(ThreeHostsCase):
    def test_a_look_at_two_hosts_is_as_one_at_all(self):
        one, two = self.boot(host="h1"), self.boot(host="h2")
        gone = self.boot(host="h3")
        before = read_snapshot(self.api)
        self.servers.live_migrate(one, "h3")
        self.servers.delete(gone)
        self.servers.cold_migrate(two, "h3")
        new = self.boot(host="h1")

        found = refresh(self.api, before, ["h1", "h3"])

        expected = read_snapshot(self.api)
        self.assertEqual({"h1": {new.id}, "h3": {one.id, two.id}}, _on(found))
        self.assertEqual(_on(expected), _on(found))
        self.assertEqual(
            {s.id: s for s in expected.servers}, {s.id: s for s in found.servers}
        )
        self.assertEqual(expected.migrations, found.migrations)
        self.assertEqual(expected.hosts[::2], found.hosts[::2])
        # The other host is as it was.
        self.assertEqual(before.hosts[1], found.hosts[1])
        trees = [expected.trees[h.provider] for h in expected.hosts[::2]]
        self.assertEqual(trees, [found.trees[h.provider] for h in found.hosts[::2]])


def _on(found):
    return {
        host: {server.id for server in servers}
        for host, servers in found.servers_by_host.items()
        if servers
    }
