# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm.changes.migrations import model
from nova_perfvm.changes.migrations.hosts import NoRoomError
from nova_perfvm.changes.migrations.model import MigrationPlan, Move, MoveError
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.snapshot import HostPages, Inventory
from tests.unit.facts.snapshot.clouds import GENERAL, POLICY, Cloud


def move_of(cloud, name, target, *, live=True):
    """Return the migration of a server of a cloud."""
    server = cloud.servers[name]
    return Move(
        server=server.id,
        name=name,
        source=server.host,
        target=target,
        live=live,
        memory_mb=server.memory_mb,
        vcpus=server.vcpus,
        pinned=bool(server.pinned),
        class_name=server.extra_specs["perfvm:class"],
    )


class MovedTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        for name in ("hp1", "hp2"):
            self.cloud.add_host(name)
        for name in ("g1", "g2"):
            self.cloud.add_host(name, "shared")
            self.cloud.change_inventories(name, DISK_GB=Inventory(900, 900))
        self.cloud.add_hp("a", "hp1")
        self.cloud.add_hp("b", "hp2", first=0)
        self.cloud.add_general("g", "g1")

    def test_a_pinned_server(self):
        before = self.cloud.snapshot()
        after = model.moved(before, POLICY, move_of(self.cloud, "a", "hp2"))
        a, b = after.server_by_id["i-a"], after.server_by_id["i-b"]
        self.assertEqual(("hp2", "hp2", 1), (a.host, a.node, a.cells[0].host_node))
        self.assertEqual(20, len(a.pinned_cpus))
        self.assertEqual(frozenset(), a.pinned_cpus & b.pinned_cpus)
        held = {"PCPU": 20, "MEMORY_MB": 65536, const.RC_SLOT: 1}
        providers = after.provider_by_uuid
        self.assertEqual({}, providers["p-hp1"].allocations)
        self.assertEqual(held, providers["p-hp2"].allocations["i-a"])
        empty, full = (v.facts for v in views_of(after)[:2])
        self.assertEqual([0, 0], [len(c.pinned_cpus) for c in empty.cells])
        self.assertEqual([20, 20], [len(c.pinned_cpus) for c in full.cells])
        self.assertEqual((2, 40), (full.num_instances, full.vcpus_used))
        # Nobody else has changed.
        self.assertEqual(before.servers[1:], after.servers[1:])

    def test_a_server_that_shares(self):
        found = model.moved(
            self.cloud.snapshot(), POLICY, move_of(self.cloud, "g", "g2")
        )
        self.assertEqual("g2", found.server_by_id["i-g"].host)
        held = {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 40}
        self.assertEqual(held, found.provider_by_uuid["p-g2"].allocations["i-g"])
        self.assertEqual({}, found.provider_by_uuid["p-g1"].allocations)

    def test_what_the_compute_service_reports(self):
        found = self.cloud.snapshot()
        hosts = tuple(
            dataclasses.replace(
                host,
                num_instances=1,
                vcpus_used=20,
                cells=tuple(
                    dataclasses.replace(
                        cell,
                        pinned_cpus=frozenset(cell.pcpuset if not cell.id else ()),
                        memory_usage_mb=65536 * (not cell.id),
                        mempages=(HostPages(4, 1 << 28), HostPages(2048, 1 << 16)),
                    )
                    for cell in host.cells
                ),
            )
            for host in found.hosts
        )
        found = dataclasses.replace(found, hosts=hosts)
        after = model.moved(found, POLICY, move_of(self.cloud, "a", "hp2"))
        hp1, hp2 = after.hosts[:2]
        self.assertEqual(
            [(0, 0), (2, 40)],
            [(h.num_instances, h.vcpus_used) for h in (hp1, hp2)],
        )
        self.assertEqual(
            [(0, 0), (0, 0), (20, 65536), (20, 65536)],
            [
                (len(c.pinned_cpus), c.memory_usage_mb)
                for h in (hp1, hp2)
                for c in h.cells
            ],
        )

    def test_a_target_that_does_not_take_it(self):
        move = move_of(self.cloud, "a", "g1")
        snapshot = self.cloud.snapshot()
        error = self.assertRaises(NoRoomError, model.moved, snapshot, POLICY, move)
        self.assertIn("g1 does not take a", str(error))


class AllowsTest(testtools.TestCase):
    def test_the_rules_and_placement_say_it(self):
        cloud = Cloud()
        cloud.add_host("hp1")
        cloud.add_host("hp2")
        cloud.add_host("g1", "shared")
        cloud.add_hp("a", "hp1")
        snapshot = cloud.snapshot()
        server = snapshot.server_by_id["i-a"]

        def verdict(host, **options):
            return model.allows(POLICY, snapshot, server, host, **options)

        self.assertTrue(verdict("hp2").accepted)
        self.assertIn("placement.", verdict("g1").code)
        zoned = dataclasses.replace(server, availability_zone="az1")
        snapshot = dataclasses.replace(snapshot, servers=(zoned,))
        server = zoned
        self.assertEqual(const.NOVA_AVAILABILITY_ZONE, verdict("hp2").code)
        self.assertTrue(verdict("hp2", any_zone=True).accepted)
        self.assertRaises(MoveError, verdict, "nowhere")

    def test_what_it_asks_for(self):
        cloud = Cloud()
        cloud.add_host("g1", "shared")
        cloud.add_general("g", "g1", availability_zone="az1")
        snapshot = cloud.snapshot()
        request = model.request_to_move(snapshot, snapshot.servers[0])
        self.assertEqual(("az1", "i-g"), (request.availability_zone, request.server))
        self.assertEqual(GENERAL, request.facts.flavor)
        request = model.request_to_move(snapshot, snapshot.servers[0], any_zone=True)
        self.assertEqual("", request.availability_zone)


class MigrationPlanTest(testtools.TestCase):
    def test_what_it_costs(self):
        cloud = Cloud()
        cloud.add_host("hp1")
        cloud.add_hp("a", "hp1")
        cloud.add_host("g1", "shared")
        cloud.add_general("g", "g1")
        moves = (move_of(cloud, "a", "hp2"), move_of(cloud, "g", "g2", live=False))
        plan = MigrationPlan(moves, gained=1, wanted=2)
        self.assertFalse(plan.complete)
        self.assertTrue(MigrationPlan(moves, 2, 2).complete)
        self.assertEqual((1, 1, 1), (plan.live, plan.cold, plan.pinned))
        self.assertEqual(65536 + 4096, plan.memory_mb)
        self.assertEqual(model.cost_mb(65536, pinned=True), moves[0].cost_mb)
        self.assertGreater(
            model.cost_mb(65536, pinned=True), model.cost_mb(65536, pinned=False)
        )
