# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.changes.align import plan_align
from nova_perfvm.changes.enroll import plan_enroll
from nova_perfvm.changes.steps import with_changes
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.drift import drifted
from nova_perfvm.facts.host_view import view_of
from nova_perfvm.facts.snapshot import NOVA_DATABASE
from nova_perfvm.policy import loader
from tests.unit.facts.snapshot.clouds import Cloud

POLICY = dataclasses.replace(loader.load(), placement="cells")


def enrolled(cloud):
    """Return a cloud when its host h1 is enrolled, by what Nova's database has."""
    seen = cloud.snapshot()
    hosts = (dataclasses.replace(h, cells_source=NOVA_DATABASE) for h in seen.hosts)
    seen = dataclasses.replace(seen, hosts=tuple(hosts))
    while changes := _plan(seen).changes:
        seen = with_changes(seen, changes[:1])
    return seen


def _plan(seen):
    plan = plan_enroll(POLICY, view_of(seen, "h1"), backfill=True)
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

    def plan(self, **options):
        return plan_align(POLICY, view_of(self.seen, "h1"), **options)

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
        self.run_on(a=1)
        (refusal,) = self.plan().refusals
        self.assertIn("h1_perfvm_cell_1 has 20 CUSTOM_PERFVM_CELL_CPU", refusal)
        self.assertIn("40 would be held, with what b (i-b) holds", refusal)
        self.run_on(b=0)
        (refusal,) = self.plan(migrating={"i-b"}).refusals
        self.assertIn("b (i-b) is in Nova's hands (ACTIVE)", refusal)
        self.change("a", status="VERIFY_RESIZE")
        self.assertEqual(["b (i-b)"], self.found())
        (refusal,) = self.plan().refusals
        self.assertIn("a (i-a) is in Nova's hands (VERIFY_RESIZE)", refusal)

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
