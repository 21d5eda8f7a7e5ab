# SPDX-License-Identifier: Apache-2.0

import dataclasses
from typing import ClassVar

import testtools

from nova_perfvm import constants as const
from nova_perfvm.changes.migrations import model
from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.model import MoveError
from nova_perfvm.changes.migrations.planning import Planning
from nova_perfvm.diagnose.nova_filters.aggregates import TENANT_KEY
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts import PagePool
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.snapshot import Aggregate, Server
from nova_perfvm.facts.snapshot.pci import PCIRequest
from tests.unit.facts.snapshot.clouds import POLICY, Cloud


class KindTest(testtools.TestCase):
    """Servers of one kind have the same request, but for their group."""

    # {field: other values}; other fields get a value of their type.
    VALUES: ClassVar = {
        "host": ("hp2", None),
        "status": ("SHUTOFF", "ERROR"),
        "extra_specs": ({}, {const.CPU_POLICY: "dedicated"}),
        "image": ("i", None),
        "pci_requests": ((), (PCIRequest("gpu", 1, ({"vendor_id": "10de"},)),)),
        "pci_devices": ((),),
        "cells": ((), None),
    }

    def another(self, value):
        if isinstance(value, bool) or value is None:
            other = not value
        else:
            other = value + (7 if isinstance(value, int) else "x")
        return (other,)

    def test_each_field(self):
        cloud = Cloud()
        for name in ("hp1", "hp2"):
            cloud.add_host(name)
        cloud.add_hp("a", "hp1")
        metadata = {f"{TENANT_KEY}x": "p"}
        tenants = Aggregate(1, "u", "x", metadata, frozenset({"hp1"}))
        snapshot = dataclasses.replace(cloud.snapshot(), aggregates=(tenants,))
        first = dataclasses.replace(snapshot.servers[0], image="i")
        differing = set()
        for one in dataclasses.fields(Server):
            others = self.VALUES.get(one.name)
            for changed in others or self.another(getattr(first, one.name)):
                second = dataclasses.replace(first, **{one.name: changed})
                planning = Planning(POLICY, snapshot, settings_for(POLICY))
                alike = planning.ungrouped(first) is planning.ungrouped(second)
                requests = [
                    dataclasses.replace(
                        model.request_to_move(snapshot, each), server="", group=None
                    )
                    for each in (first, second)
                ]
                if alike:
                    self.assertEqual(*requests, one.name)
                elif requests[0] != requests[1]:
                    differing.add(one.name)
        self.assertLess({"disk_gb", "other_disks_gb", "volume_root"}, differing)


class MovedTest(testtools.TestCase):
    """What a migration does to a cloud whose hosts report what is used."""

    def test_a_pinned_server(self):
        cloud = Cloud()
        for name in ("hp1", "hp2"):
            cloud.add_host(name)
        cloud.add_host("g1", "shared")
        cloud.add_hp("a", "hp1")
        cloud.add_hp("b", "hp2", first=0)
        before = cloud.snapshot()
        snapshot = dataclasses.replace(
            before,
            hosts=tuple(
                dataclasses.replace(
                    host,
                    num_instances=1,
                    vcpus_used=20,
                    cells=tuple(
                        dataclasses.replace(
                            cell,
                            pinned_cpus=frozenset(() if cell.id else cell.pcpuset),
                            memory_usage_mb=65536 * (not cell.id),
                            mempages=(PagePool(4, 1 << 28), PagePool(2048, 1 << 16)),
                        )
                        for cell in host.cells
                    ),
                )
                for host in before.hosts
            ),
        )
        start = Arrangement(Planning(POLICY, snapshot, settings_for(POLICY)))
        self.assertIsNone(start.moved("i-a", "g1"))
        after = start.moved("i-a", "hp2").snapshot()
        a, b = after.server_by_id["i-a"], after.server_by_id["i-b"]
        self.assertEqual(("hp2", "hp2", 1), (a.host, a.node, a.cells[0].host_node))
        self.assertEqual(20, len(a.pinned_cpus))
        self.assertEqual(frozenset(), a.pinned_cpus & b.pinned_cpus)
        held = {"PCPU": 20, "MEMORY_MB": 65536, const.RC_SLOT: 1}
        providers = after.provider_by_uuid
        self.assertEqual({}, providers["p-hp1"].allocations)
        self.assertEqual(held, providers["p-hp2"].allocations["i-a"])
        empty, full = (v.facts for v in views_of(after)[:2])
        for facts, pins, memory_mb in ((empty, 0, 0), (full, 20, 65536)):
            self.assertEqual(
                [(pins, memory_mb)] * 2,
                [(len(c.pinned_cpus), c.memory_usage_mb) for c in facts.cells],
            )
        self.assertEqual((2, 40), (full.num_instances, full.vcpus_used))
        # Nobody else has changed.
        self.assertEqual(snapshot.servers[1:], after.servers[1:])


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
