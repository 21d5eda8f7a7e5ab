# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.changes.heal import hosts_to_heal, plan_heal
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.facts.snapshot import (
    Aggregate,
    ComputeHost,
    Inventory,
    Provider,
    Server,
    Snapshot,
)
from nova_perfvm.findings import Finding
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.policy import loader

SLOTS = dataclasses.replace(loader.load(), placement="slots")
HIGH = next(f for f in generate_flavors(SLOTS) if f.class_name == "high-performance")
MEMORY = {"MEMORY_MB": HIGH.memory_mb}
ALL = {"PCPU": 20, const.RC_SLOT: 1, **MEMORY}


def high(name, **changes):
    specs = dict(HIGH.extra_specs)
    made = Server(name, name, "h1", "ACTIVE", HIGH.vcpus, specs, pinned=True)
    return dataclasses.replace(made, **{"memory_mb": HIGH.memory_mb} | changes)


def view(*servers, held=None, slots=2, aggregates=()):
    """Return a dedicated host.

    :param held: what each server has of it
    """
    inventories = {"PCPU": Inventory(40, 40), "MEMORY_MB": Inventory(10**6, 10**6)}
    if slots:
        inventories[const.RC_SLOT] = Inventory(slots, 1)
    root = Provider("r", "h1", 1, inventories, allocations=held or {})
    hosts = (ComputeHost("h1", "h1", "r", "s"),)
    seen = Snapshot(
        "", hosts=hosts, providers=(root,), servers=servers, aggregates=aggregates
    )
    return view_of(seen, "h1")


class PlanTest(testtools.TestCase):
    def given(self, seen, policy=SLOTS, migrating=()):
        """Return what each server gets of the host's provider, and who is left."""
        found = plan_heal(policy, seen, migrating)
        steps = {name: dict(step.resources["r"]) for name, step in found.steps.items()}
        return steps, found.left

    def test_all_and_part_and_nothing(self):
        servers = [high(name) for name in ("lost", "part", "whole")]
        held = {"part": {"PCPU": 20, **MEMORY}, "whole": ALL}
        steps, left = self.given(view(*servers, held=held))
        self.assertEqual({"lost": ALL, "part": {const.RC_SLOT: 1}}, steps)
        self.assertEqual({}, left)

    def test_a_flavor_that_asks_for_no_slot(self):
        specs = {k: v for k, v in HIGH.extra_specs.items() if "CUSTOM" not in k}
        seen = view(high("a", extra_specs=specs))
        self.assertEqual({"a": ALL}, self.given(seen)[0])
        # Whom nobody manages nobody judges.
        labelled = dataclasses.replace(SLOTS, managed_hosts="labelled")
        without = {"a": {"PCPU": 20, **MEMORY}}
        self.assertEqual(without, self.given(seen, labelled)[0])
        label = {const.CLASS_KEY: "high-performance"}
        aggregate = Aggregate(1, "u", "a", label, frozenset({"h1"}))
        seen = view(seen.servers[0], aggregates=(aggregate,))
        self.assertEqual({"a": ALL}, self.given(seen, labelled)[0])

    def test_what_its_host_does_not_have(self):
        held = {"b": {"PCPU": 20, **MEMORY}}
        steps, left = self.given(view(high("a"), high("b"), held=held, slots=0))
        self.assertEqual({}, steps)
        self.assertIn("a (a) has no allocation of h1", left["a"])
        self.assertIn("lacks 1 CUSTOM_PERFVM_SLOT, and h1 has none", left["b"])

    def test_what_its_flavor_does_not_tell_and_who_is_in_novas_hands(self):
        alias, busy = "pci_passthrough:alias", "look again when Nova is done"
        for words, migrating, changes in (
            (const.CPU_POLICY, (), {"pinned": False}),
            (alias, (), {"extra_specs": HIGH.extra_specs | {alias: "g:1"}}),
            (busy, (), {"task": "rebuilding"}),
            (busy, (), {"status": "VERIFY_RESIZE"}),
            (busy, {"a"}, {}),
        ):
            steps, left = self.given(view(high("a", **changes)), migrating=migrating)
            self.assertEqual({}, steps)
            self.assertIn(words, left["a"])

    def test_disks(self):
        specs = {"hw:cpu_policy": "shared"}
        plain = Server("a", "a", "h1", "ACTIVE", 2, specs, pinned=False)
        plain = dataclasses.replace(plain, memory_mb=1, disk_gb=10, other_disks_gb=4)
        seen = view()
        inventories = {n: Inventory(99, 99) for n in ("VCPU", "MEMORY_MB", "DISK_GB")}
        root = dataclasses.replace(seen.root, inventories=inventories)
        for changes, disk in (
            ({"image": "i"}, 14),
            ({"image": "i", "volume_root": True}, 4),
            ({"image": None}, 4),
        ):
            server = dataclasses.replace(plain, **changes)
            seen = dataclasses.replace(seen, tree=(root,), servers=(server,))
            self.assertEqual(disk, self.given(seen)[0]["a"]["DISK_GB"])


class HostsTest(testtools.TestCase):
    def test_of_servers_and_of_hosts(self):
        server = high("a")
        nowhere = high("b", host=None)
        snapshot = Snapshot("2026-01-01T00:00:00+00:00", servers=(server, nowhere))
        findings = [
            Finding.of(codes.NOT_CLAIMED, str(server), ""),
            Finding.of(codes.ALLOCATION_MISSING, str(nowhere), ""),
            Finding.of(codes.LEAKED_ALLOCATION, "x", ""),
        ]
        self.assertEqual(["h1"], hosts_to_heal(snapshot, findings))
