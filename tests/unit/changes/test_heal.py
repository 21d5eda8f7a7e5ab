# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.changes.heal import hosts_to_heal, plan_heal
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.facts.snapshot import Aggregate, Inventory
from nova_perfvm.findings import Finding
from tests.unit.facts.snapshot.clouds import HP, POLICY, Cloud

MEMORY = {"MEMORY_MB": 65536}
ALL = {"PCPU": 20, const.RC_SLOT: 1, **MEMORY}
LABELLED = dataclasses.replace(POLICY, managed_hosts="labelled")


class PlanTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud()
        self.cloud.add_host("h1")

    def add(self, name, held=None, **changes):
        """Add a server to the host, and what it has of it; None for nothing."""
        before = self.cloud.providers["h1"].allocations
        self.cloud.add_hp(name, "h1", **changes)
        held = {} if held is None else {f"i-{name}": held}
        self.cloud.change_provider("h1", allocations={**before, **held})

    def given(self, policy=POLICY, migrating=()):
        """Return what each server gets of the host's provider, and who is left."""
        view = view_of(self.cloud.snapshot(), "h1")
        found = plan_heal(policy, view, migrating)
        steps = {n: dict(step.resources["p-h1"]) for n, step in found.steps.items()}
        return steps, found.left

    def test_all_and_part_and_nothing(self):
        self.add("lost")
        self.add("part", {"PCPU": 20, **MEMORY})
        self.add("whole", ALL)
        expected = {"i-lost": ALL, "i-part": {const.RC_SLOT: 1}}
        self.assertEqual((expected, {}), self.given())

    def test_a_flavor_that_asks_for_no_slot(self):
        specs = self.cloud.flavors[HP].extra_specs
        specs = {k: v for k, v in specs.items() if "CUSTOM" not in k}
        self.add("a", extra_specs=specs)
        self.assertEqual({"i-a": ALL}, self.given()[0])
        # Whom nobody manages nobody judges.
        without = {"i-a": {"PCPU": 20, **MEMORY}}
        self.assertEqual(without, self.given(LABELLED)[0])
        label = {const.CLASS_KEY: "high-performance"}
        aggregate = Aggregate(1, "u", "a", label, frozenset({"h1"}))
        self.cloud.parts["aggregates"] = (aggregate,)
        self.assertEqual({"i-a": ALL}, self.given(LABELLED)[0])

    def test_a_flavor_that_asks_for_more_than_its_class(self):
        """Nova took what the flavor asks for; what was lost is the same again."""
        specs = self.cloud.flavors[HP].extra_specs
        self.add("a", extra_specs=specs | {f"resources:{const.RC_SLOT}": "2"})
        self.assertEqual({"i-a": ALL | {const.RC_SLOT: 2}}, self.given()[0])

    def test_what_its_host_does_not_have(self):
        self.add("a")
        self.add("b", {"PCPU": 20, **MEMORY})
        self.cloud.change_inventories("h1", **{const.RC_SLOT: None})
        steps, left = self.given()
        self.assertEqual({}, steps)
        self.assertIn("a (i-a) has no allocation of h1", left["i-a"])
        self.assertIn("lacks 1 CUSTOM_PERFVM_SLOT, and h1 has none", left["i-b"])

    def test_what_its_flavor_does_not_tell_and_who_is_in_novas_hands(self):
        alias, busy = "pci_passthrough:alias", "look again when Nova is done"
        specs = self.cloud.flavors[HP].extra_specs
        for words, migrating, changes in (
            (const.CPU_POLICY, (), {"pinned": False}),
            (alias, (), {"extra_specs": specs | {alias: "g:1"}}),
            (busy, (), {"task": "rebuilding"}),
            (busy, (), {"status": "VERIFY_RESIZE"}),
            (busy, {"i-a"}, {}),
        ):
            self.add("a", **changes)
            steps, left = self.given(migrating=migrating)
            self.assertEqual({}, steps)
            self.assertIn(words, left["i-a"])

    def test_disks(self):
        stock = {n: Inventory(99, 99) for n in ("VCPU", "MEMORY_MB", "DISK_GB")}
        self.cloud.change_provider("h1", inventories=stock)
        self.cloud.add_general("a", "h1", memory_mb=1, disk_gb=10, other_disks_gb=4)
        self.cloud.change_provider("h1", allocations={})
        for changes, disk in (
            ({}, 14),
            ({"volume_root": True}, 4),
            ({"image": None, "volume_root": False}, 4),
        ):
            self.cloud.change_server("a", **changes)
            self.assertEqual(disk, self.given()[0]["i-a"]["DISK_GB"])


class HostsTest(testtools.TestCase):
    def test_of_servers_and_of_hosts(self):
        cloud = Cloud()
        cloud.add_host("h1")
        cloud.add_hp("a", "h1")
        cloud.add_hp("b", None)
        snapshot = cloud.snapshot()
        server, nowhere = snapshot.servers
        findings = [
            Finding.of(codes.NOT_CLAIMED, str(server), ""),
            Finding.of(codes.ALLOCATION_MISSING, str(nowhere), ""),
            Finding.of(codes.LEAKED_ALLOCATION, "x", ""),
        ]
        self.assertEqual(["h1"], hosts_to_heal(snapshot, findings))
