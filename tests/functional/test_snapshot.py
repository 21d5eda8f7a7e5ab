# SPDX-License-Identifier: Apache-2.0
"""Snapshots of a real Nova and Placement, by the command that takes them."""

import pathlib

import fixtures

from nova_perfvm import constants as const
from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.snapshot import read_snapshot
from nova_perfvm.facts import snapshot
from nova_perfvm.rules.slots import host_mode
from tests.functional import base, client


class TestSnapshot(client.ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"

    def test_saved_is_what_there_is(self):
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        self.cloud.start_configured("g1", self.policy, "shared")
        high, general = self.boot(), self.boot(base.GENERAL_2)
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "file"

        status, stdout, stderr = self.run_command("snapshot", "save", str(path))
        self.assertEqual((0, f"{path}: 2 hosts, 2 servers\n"), (status, stdout))
        found = snapshot.loads(path.read_text())

        # There is no Glance beside this cloud.
        self.assertIn("not seen: images", stderr)
        self.assertIsNone(found.images)
        g1, hp1 = found.hosts
        self.assertEqual(("g1", "hp1"), (g1.host, hp1.host))
        self.assertTrue(hp1.up)
        self.assertEqual("2x20", str(hp1.shape))
        self.assertEqual(snapshot.ASSUMED, hp1.cells_source)
        flavors = {flavor.name: flavor.vcpus for flavor in found.flavors}
        self.assertEqual((20, 2), (flavors[base.HP_64], flavors[base.GENERAL_2]))
        self._see_high(found, hp1, found.server_by_id[high.id])
        shared = found.server_by_id[general.id]
        self.assertEqual(("g1", base.GENERAL_2), (shared.host, shared.flavor))
        # Not asked: no image can pin a server whose flavor says that it is shared.
        self.assertEqual((None, None), (shared.cells, shared.pinned))
        self.assertEqual(self.cloud.image, shared.image)
        again = read_snapshot(API(self.connection("admin", "admin")))
        self.assertEqual(found.servers, again.servers)
        self._resize_under_way(high)

    def _see_high(self, found, host, server):
        guest = self.cloud.guest(self.servers.show(server))
        self.assertEqual(set(guest.pins), server.pinned_cpus)
        self.assertEqual(guest.host_nodes, {cell.host_node for cell in server.cells})
        self.assertIsNone(server.image)
        provider = found.provider_by_uuid[host.provider]
        self.assertEqual("hp1", provider.name)
        self.assertIn(const.TRAIT_HIGH_PERFORMANCE, provider.traits)
        self.assertEqual(1, provider.used(const.RC_SLOT))
        self.assertEqual(20, provider.used("PCPU"))
        facts = snapshot.host_facts(found, host)
        self.assertEqual("dedicated", host_mode(facts))
        free = sorted(len(cell.free_pcpus) for cell in facts.cells)
        self.assertEqual([0, 20], free)

    def _resize_under_way(self, server):
        self.cloud.start_configured("hp2", self.policy, "dedicated")
        self.servers.cold_migrate(server)

        found = read_snapshot(API(self.connection("admin", "admin")))

        (migration,) = found.migrations
        self.assertEqual(
            (server.id, "finished", "migration"),
            (migration.server, migration.status, migration.kind),
        )
        consumers = {c for p in found.providers for c in p.allocations}
        self.assertLessEqual({server.id, migration.id}, consumers)
