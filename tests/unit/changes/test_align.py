# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import random

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.changes.align import plan_align
from nova_perfvm.changes.enroll import plan_close, plan_enroll
from nova_perfvm.changes.steps import with_changes
from nova_perfvm.changes.unenroll import plan_unenroll
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.capacity import request_of_class
from nova_perfvm.diagnose.drift import drifted
from nova_perfvm.diagnose.verdicts import judge, settings_for
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.facts.snapshot import NOVA_DATABASE, Flavor, ServerCell
from nova_perfvm.policy import loader
from tests.unit.facts.snapshot.clouds import Cloud
from tests.unit.placement.test_cells import POLICY as MIXED

POLICY = dataclasses.replace(loader.load(), placement="cells")


def enrolled(cloud, policy=POLICY):
    """Return a cloud when its host h1 is enrolled, by what Nova's database has."""
    seen = cloud.snapshot()
    hosts = (dataclasses.replace(h, cells_source=NOVA_DATABASE) for h in seen.hosts)
    seen = dataclasses.replace(seen, hosts=tuple(hosts))
    while changes := _plan(seen, policy).changes:
        seen = with_changes(seen, changes[:1])
    return seen


def _plan(seen, policy):
    plan = plan_enroll(policy, view_of(seen, "h1"), backfill=True)
    if plan.refusals:
        raise AssertionError(plan.refusals)
    return plan


class AlignTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = Cloud(POLICY)
        self.cloud.add_host("h1")
        for node, name in enumerate("ab"):
            self.cloud.add_hp(name, "h1", first=20 * node, node=node)
        self.seen = enrolled(self.cloud)

    def run_on(self, **nodes):
        """Let Nova run servers on other nodes."""
        servers = [
            dataclasses.replace(
                s, cells=(dataclasses.replace(s.cells[0], host_node=nodes[s.name]),)
            )
            if s.name in nodes
            else s
            for s in self.seen.servers
        ]
        self.seen = dataclasses.replace(self.seen, servers=tuple(servers))

    def change(self, name, **facts):
        servers = [
            dataclasses.replace(s, **facts) if s.name == name else s
            for s in self.seen.servers
        ]
        self.seen = dataclasses.replace(self.seen, servers=tuple(servers))

    def plan(self, *migrating):
        found = view_of(self.seen, "h1")
        return plan_align(POLICY, found, {*migrating}.intersection)

    def left(self, *migrating):
        """Return what is left, by name of the server, where nothing is changed."""
        plan = self.plan(*migrating)
        self.assertEqual(((), ()), (plan.changes, plan.refusals))
        return {one.name: one.detail for one in plan.left}

    def found(self):
        report = audit.run(audit.Subject(POLICY, self.seen))
        return [f.subject for f in report.findings if f.code == codes.CELL_DIFFERS]

    def held(self):
        return {
            (child.name, consumer): taken[const.RC_CELL_CPU]
            for child in view_of(self.seen, "h1").children
            for consumer, taken in child.allocations.items()
        }

    def test_two_that_change_places(self):
        self.assertEqual(((), []), (self.plan().changes, self.found()))
        before = self.held()
        self.run_on(a=1, b=0)
        self.assertEqual(["a (i-a)", "b (i-b)"], self.found())
        (step,) = self.plan().changes
        self.seen = with_changes(self.seen, [step])
        expected = {
            ("h1_perfvm_cell_0", "i-b"): 20,
            ("h1_perfvm_cell_1", "i-a"): 20,
        }
        self.assertEqual(expected, self.held())
        self.assertNotEqual(before, expected)
        self.assertEqual(((), []), (self.plan().changes, self.found()))
        # What it holds of the host itself stays.
        root = view_of(self.seen, "h1").root
        self.assertEqual(20, root.allocations["i-a"]["PCPU"])

    def test_what_is_in_the_way(self):
        full = "h1_perfvm_cell_1 has 20 CUSTOM_PERFVM_CELL_CPU, and 40 would be held, "
        self.run_on(a=1)
        self.assertIn(f"{full}by this server and b (i-b)", self.left()["a (i-a)"])
        self.run_on(b=0)
        left = self.left("i-b")
        self.assertIn("in Nova's hands (ACTIVE)", left["b (i-b)"])
        # Neither has room while the other stays.
        self.assertIn(f"{full}by this server and b (i-b)", left["a (i-a)"])
        self.change("a", status="VERIFY_RESIZE")
        self.assertEqual(["a (i-a)", "b (i-b)"], self.found())
        self.assertIn("in Nova's hands (VERIFY_RESIZE)", self.left()["a (i-a)"])
        # Nova may be changing what it holds.
        self.change("a", status="VERIFY_RESIZE", task="resize_reverting")
        self.assertEqual(["b (i-b)"], self.found())

    def test_others_are_aligned(self):
        """Two change places, and two cannot, as one of these is being migrated."""
        self.cloud = Cloud(POLICY)
        self.cloud.add_host("h1", shape="4x20", memory_gb=1000)
        for node, name in enumerate("abcd"):
            self.cloud.add_hp(name, "h1", first=20 * node, node=node)
        self.seen = enrolled(self.cloud)
        self.run_on(a=1, b=0, c=3, d=2)
        plan = self.plan("i-d")
        (step,) = plan.changes
        self.assertEqual({"i-a", "i-b"}, step.resources.keys())
        self.assertEqual(["d (i-d)", "c (i-c)"], [one.name for one in plan.left])
        self.seen = with_changes(self.seen, [step])
        self.assertEqual(["c (i-c)", "d (i-d)"], self.found())
        self.assertEqual({"c (i-c)", "d (i-d)"}, self.left("i-d").keys())
        (step,) = self.plan().changes
        self.seen = with_changes(self.seen, [step])
        self.assertEqual([], self.found())

    def test_a_child_that_is_lost(self):
        self.run_on(a=1, b=0)
        kept = [p for p in self.seen.providers if p.name != "h1_perfvm_cell_1"]
        self.seen = dataclasses.replace(self.seen, providers=tuple(kept))
        left = self.left()["a (i-a)"]
        self.assertIn("h1 does not have h1_perfvm_cell_1: openstack", left)
        self.assertIn("host enroll h1 --from-nova-db", left)

    def test_hosts_that_are_not_enrolled(self):
        self.seen = self.cloud.snapshot()
        (refusal,) = self.plan().refusals
        self.assertIn("h1 is not enrolled by this policy", refusal)
        self.assertIn("host enroll h1 --from-nova-db", refusal)

    def test_children_that_are_not_right(self):
        """Enrolling repairs them, and no API shows it the NUMA nodes."""
        ((uuid, child), *_) = (
            (p.uuid, p) for p in self.seen.providers if p.name == "h1_perfvm_cell_0"
        )
        half = dataclasses.replace(child.inventories[const.RC_CELL_CPU], total=10)
        inventories = {**child.inventories, const.RC_CELL_CPU: half}
        providers = tuple(
            dataclasses.replace(p, inventories=inventories) if p.uuid == uuid else p
            for p in self.seen.providers
        )
        self.seen = dataclasses.replace(self.seen, providers=providers)
        report = audit.run(audit.Subject(POLICY, self.seen))
        remedies = {
            f.remedy for f in report.findings if f.code == codes.CHILDREN_DIFFER
        }
        self.assertEqual({"openstack perfvm host enroll h1 --from-nova-db"}, remedies)

    def test_a_guess_is_no_finding(self):
        """Without anybody who knows the nodes, the children are taken for right."""
        hosts = [
            dataclasses.replace(
                h, cells=(dataclasses.replace(h.cells[0], memory_mb=1),)
            )
            for h in self.cloud.snapshot().hosts
        ]
        self.seen = dataclasses.replace(self.seen, hosts=tuple(hosts))
        report = audit.run(audit.Subject(POLICY, self.seen))
        found = {f.code for f in report.findings}
        self.assertNotIn(codes.CHILDREN_DIFFER, found)
        self.assertEqual([], list(drifted(POLICY, view_of(self.seen, "h1"))))


class SizesTest(testtools.TestCase):
    """VMs of several sizes, held and run on nodes at random, and a stranger."""

    VCPUS = (16, 8, 4, 4, 4)

    def setUp(self):
        super().setUp()
        self.cloud = Cloud(MIXED)
        self.cloud.add_host("h1")
        for vcpus in {*self.VCPUS}:
            specs = {const.CLASS_KEY: f"c{vcpus}", const.CPU_POLICY: "dedicated"}
            flavor = Flavor(f"c{vcpus}", f"c{vcpus}", vcpus, 1024, 0, specs)
            self.cloud.flavors[flavor.name] = flavor
        # All that they fit onto, by the node of each.
        self.all = [
            nodes
            for nodes in itertools.product((0, 1), repeat=len(self.VCPUS))
            if max(self.on(nodes, 0), self.on(nodes, 1)) <= 20
        ]

    def on(self, nodes, number):
        found = zip(nodes, self.VCPUS, strict=True)
        return sum(vcpus for node, vcpus in found if node == number)

    def seen(self, held, run, stranger):
        """Return the cloud with VMs held on nodes, and run on others."""
        for number, (node, vcpus) in enumerate(zip(held, self.VCPUS, strict=True)):
            pins = {vcpu: 20 * node + vcpu for vcpu in range(vcpus)}
            cell = ServerCell(node, frozenset(pins), 1024, pins)
            resources = {"PCPU": vcpus, "MEMORY_MB": 1024}
            more = {"cells": (cell,), "pinned": True}
            self.cloud.add(str(number), "h1", f"c{vcpus}", resources, **more)
        seen = enrolled(self.cloud, MIXED)
        providers = [
            dataclasses.replace(
                p,
                allocations={
                    **p.allocations,
                    "stranger": {const.RC_CELL_CPU: stranger},
                },
            )
            if stranger and p.name == "h1_perfvm_cell_0"
            else p
            for p in seen.providers
        ]
        servers = []
        for server, node in zip(seen.servers, run, strict=True):
            cell = dataclasses.replace(server.cells[0], host_node=node)
            servers.append(dataclasses.replace(server, cells=(cell,)))
        return dataclasses.replace(
            seen, providers=tuple(providers), servers=tuple(servers)
        )

    def test_all_are_aligned_that_can_be(self):
        partly = 0
        for seed in range(40):
            rng = random.Random(seed)
            held, run = rng.choice(self.all), rng.choice(self.all)
            stranger = rng.randint(0, 20 - self.on(held, 0))
            seen = self.seen(held, run, stranger)
            moving = {s.id for s in seen.servers if not rng.randint(0, 4)}
            before = self.drifted(seen)
            plan = self.plan(seen, moving)
            aligned = {i for step in plan.changes for i in step.resources}
            # It raises where a node would have too little.
            seen = with_changes(seen, plan.changes)
            # What the stranger would come back to nobody can tell.
            others = [one.name for one in plan.left if one.kind == "consumer"]
            self.assertEqual(bool(stranger), bool(others))
            left = {one.name for one in plan.left} - {*others}
            self.assertEqual(set(), aligned & moving)
            self.assertEqual(before.keys() - aligned, self.drifted(seen).keys())
            self.assertEqual(left, {str(s) for s in self.drifted(seen).values()})
            self.assertEqual((), self.plan(seen, moving).changes, seed)
            for server in self.drifted(seen).keys() - moving:
                others = before.keys() - {server}
                self.assertEqual((), self.plan(seen, others | moving).changes, seed)
            partly += bool(aligned and left)
        self.assertGreater(partly, 5)

    def plan(self, seen, moving):
        return plan_align(MIXED, view_of(seen, "h1"), moving.intersection)

    def drifted(self, seen):
        found = drifted(MIXED, view_of(seen, "h1"))
        return {drift.server.id: drift.server for drift in found}


class OfferedTest(testtools.TestCase):
    def test_nodes_that_are_full_where_placement_has_room(self):
        """A host is refused whose free CPUs are on another node than Placement's."""
        cloud = Cloud(MIXED)
        cloud.add_host("h1")
        for name, first, vcpus in (("a", 0, 16), ("b", 20, 12)):
            pins = {vcpu: first + vcpu for vcpu in range(vcpus)}
            cell = ServerCell(first // 20, frozenset(pins), 1024, pins)
            flavor = Flavor(name, name, vcpus, 1024, 0)
            cloud.flavors[name] = flavor
            resources = {"PCPU": vcpus, "MEMORY_MB": 1024}
            cloud.add(name, "h1", name, resources, cells=(cell,), pinned=True)
        seen = enrolled(cloud, MIXED)
        request = request_of_class(MIXED, MIXED.get_class("c8"), seen)
        settings = settings_for(MIXED)

        def codes_of(seen):
            return judge(MIXED, request, view_of(seen, "h1"), settings).code

        self.assertEqual("", codes_of(seen))
        cells = [p for p in seen.providers if "_perfvm_cell_" in p.name]
        swapped = {
            one.uuid: other.allocations
            for one, other in zip(cells, reversed(cells), strict=True)
        }
        providers = [
            dataclasses.replace(p, allocations=swapped.get(p.uuid, p.allocations))
            for p in seen.providers
        ]
        seen = dataclasses.replace(seen, providers=tuple(providers))
        self.assertEqual(const.NOVA_NUMA_TOPOLOGY, codes_of(seen))


class ChildrenTest(testtools.TestCase):
    def test_made_for_another_provider_of_the_host(self):
        """As enrolling once left them on hosts that were installed anew."""
        cloud = Cloud(POLICY)
        cloud.add_host("h1")
        seen = enrolled(cloud)
        old = "11111111-1111-4111-8111-111111111111"
        children = [
            dataclasses.replace(p, uuid=old) if p.name == "h1_perfvm_cell_0" else p
            for p in seen.providers
        ]
        seen = dataclasses.replace(seen, providers=tuple(children))
        (refusal,) = plan_enroll(POLICY, view_of(seen, "h1")).refusals
        self.assertIn(f"nova-scheduler does not know h1_perfvm_cell_0 ({old})", refusal)
        found = audit.run(audit.Subject(POLICY, seen)).findings
        self.assertIn(codes.CHILDREN_DIFFER, {f.code for f in found})
        gone = plan_unenroll(view_of(seen, "h1"))
        seen = with_changes(seen, gone.changes)
        while changes := _plan(seen, POLICY).changes:
            seen = with_changes(seen, changes[:1])
        self.assertNotIn(old, {p.uuid for p in seen.providers})

    def test_a_host_that_is_closed(self):
        """VMs ask for the trait on NUMA nodes."""
        cloud = Cloud(POLICY)
        cloud.add_host("h1")
        view = view_of(enrolled(cloud), "h1")
        for plan in (plan_close(view), plan_unenroll(view)):
            seen = with_changes(view.cloud, plan.changes[:3])
            self.assertEqual([], [p.name for p in seen.providers if p.elastic_traits])
