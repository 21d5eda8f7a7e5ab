# SPDX-License-Identifier: Apache-2.0
"""Whom known bugs hit: in snapshots, in plans and in an audit."""

import dataclasses

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.changes.migrations import bugs, goals
from nova_perfvm.changes.migrations.execution import begin
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.cloud import migrate
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.verdicts import settings_for
from nova_perfvm.facts import PagePool, snapshot
from nova_perfvm.facts.snapshot import NOVA_DATABASE, Inventory
from nova_perfvm.findings import Level
from nova_perfvm.known_bugs import CloudFacts, Release, hits
from nova_perfvm.known_bugs.rules import RULES
from nova_perfvm.measure.collect import hypervisor
from tests.unit.facts.snapshot.clouds import POLICY
from tests.unit.known_bugs.clouds import NEW, OLD, RELEASES, cloud, with_services
from tests.unit.measure import hosts

SETTINGS = {("placement", "allocation_conflict_retry_count"): "1"}
PIN = 2152697
NAMES = {codes.NOVA_BUG, codes.NOVA_BUG_POSSIBLE}


def findings(seen, collected=()):
    """Return what an audit finds of bugs: [(level, subject, number)]."""
    subject = audit.Subject(
        POLICY, seen, placement_settings=SETTINGS, collected=collected
    )
    return [
        (one.level, one.subject, int(one.source.rsplit("/", 1)[1]))
        for one in audit.run(subject).findings
        if one.code in NAMES
    ]


def told(seen, target, collected=None):
    """Return whom the bugs of a release hit: {(number, server or host, certain)}."""
    facts = CloudFacts(seen, collected or {}, Release.parse(target))
    return {
        (bug.number, hit.server.id if hit.server else hit.host, hit.certain)
        for bug, hit in hits(facts)
        if not bug.rule.of_all
    }


class CleanTest(testtools.TestCase):
    def test_clean_clouds_of_the_releases(self):
        for release in RELEASES:
            seen = cloud(release).snapshot()
            series = int(release[:2])
            for taken, expected in (
                # The APIs of 31 and 32 tell the same.
                (seen, max(series, 32)),
                (with_services(seen, release), series),
            ):
                read = snapshot.loads(snapshot.dumps(taken))
                present = {CloudFacts(read).present(host).major for host in read.hosts}
                self.assertEqual({expected}, present)
                self.assertEqual([], findings(read), release)

    def test_old_vms_are_right_on_all_but_one(self):
        for release in RELEASES:
            found = findings(cloud(release, OLD, OLD).snapshot())
            numbers = {number for *_, number in found}
            self.assertEqual({PIN} if release == "33.0.2" else set(), numbers)

    def test_a_release_that_nobody_tells(self):
        self.assertEqual([], findings(cloud(None, OLD, OLD).snapshot()))


class StartedBeforeTest(testtools.TestCase):
    def test_how_sure_it_is(self):
        certain = [(Level.WARNING, f"{n} (i-{n})", PIN) for n in "ab"]
        self.assertEqual(certain, findings(cloud("33.0.2", OLD, OLD).snapshot()))
        perhaps = [(Level.UNKNOWN, f"{n} (i-{n})", PIN) for n in "ab"]
        self.assertEqual(perhaps, findings(cloud("33.0.2", OLD, NEW).snapshot()))

    def test_each_host_has_its_release(self):
        made = cloud("34.0.0", OLD, OLD)
        made.add_hp("d", "hp2", created=OLD, launched=OLD, updated=OLD)
        seen = with_services(made.snapshot(), "33.0.2", "hp2")
        self.assertEqual([(Level.WARNING, "d (i-d)", PIN)], findings(seen))

    def test_those_that_do_not_run(self):
        made = cloud("33.0.2", OLD, OLD)
        made.change_server("a", status="SHUTOFF")
        made.change_server("b", launched=NEW, updated=NEW)
        self.assertEqual([], findings(made.snapshot()))

    def test_before_the_upgrade_all_that_run(self):
        seen = cloud("32.2.1").snapshot()
        expected = {(PIN, "i-a", True), (PIN, "i-b", True)}
        self.assertEqual(expected, told(seen, "2026.1"))
        self.assertEqual(set(), told(seen, "2026.2"))

    def test_the_xml_decides(self):
        made = cloud("33.0.2", OLD, NEW)
        described = {"i-a": "", "i-b": '<iothreadpin iothread="1" cpuset="0-19"/>'}
        xml = {hosts.server(n).id: pin for n, pin in enumerate(described.values(), 1)}
        seen = hosts.host()
        collected = hypervisor.facts(seen)
        for number, server in enumerate(("a", "b"), 1):
            uuid = hosts.server(number).id
            vm = collected.vms[uuid]
            self.assertIn("vcpupin", vm.tuned)
            tuned = vm.tuned - {"iothreadpin"}
            if xml[uuid]:
                tuned |= {"iothreadpin"}
            collected.vms[uuid] = dataclasses.replace(vm, tuned=tuned)
            made.change_server(server, id=uuid, updated=OLD)
        facts = CloudFacts(made.snapshot(), {"hp1": collected})
        (found,) = (h for b, h in hits(facts) if b.number == PIN)
        self.assertEqual(("a", True), (found.server.name, found.certain))
        self.assertIn("its XML has no iothreadpin", found.why)


class RulesTest(testtools.TestCase):
    def test_options_of_a_host(self):
        seen = cloud("32.2.1").snapshot()
        collected = hypervisor.facts(hosts.host())
        packing = "compute", "packing_host_numa_cells_allocation_strategy"
        power = "libvirt", "cpu_power_management"
        virt_type = "libvirt", "virt_type"
        for option, value, target, expected in (
            (packing, "True", "32.2.1", {2144660}),
            (packing, "false", "32.2.1", set()),
            (virt_type, "qemu", "32.2.1", set()),
            (virt_type, "qemu", "34.0.0", {2069718}),
            (virt_type, "kvm", "34.0.0", set()),
            (power, "true", "27.0.0", {2077228, 2043707, 2038840}),
        ):
            there = dataclasses.replace(collected, options={option: value})
            found = told(seen, target, {"hp1": there})
            self.assertEqual({(n, "hp1", True) for n in expected}, found)
        there = dataclasses.replace(
            collected,
            options={
                power: "1",
                ("compute", "cpu_dedicated_set"): "1-39",
            },
        )
        found = told(seen, "27.0.0", {"hp1": there})
        self.assertEqual({2077228, 2038840}, {number for number, *_ in found})

    def test_vms_of_old_releases(self):
        made = cloud("34.0.0", "2019-01-01T00:00:00Z")
        found = {number for number, *_ in told(made.snapshot(), "24.0.0")}
        self.assertEqual({2097359, 1952941}, found)
        specs = made.servers["a"].extra_specs
        isolate = {"hw:emulator_threads_policy": "isolate"}
        made.change_server("a", extra_specs={**specs, **isolate}, created=NEW)
        self.assertIn((2056612, "i-a", False), told(made.snapshot(), "27.2.0"))

    def test_what_hosts_have(self):
        made = cloud("34.0.0")
        seen = made.snapshot()
        self.assertEqual(set(), told(seen, "29.0.0"))
        pools = (PagePool(4, 1000, 0), PagePool(1048576, 100, 0))
        changed = []
        for number, host in enumerate(seen.hosts):
            cells = tuple(
                dataclasses.replace(
                    cell,
                    mempages=pools if cell.id == 0 else pools[:1],
                    cpuset=frozenset({number}),
                )
                for cell in host.cells
            )
            changed.append(
                dataclasses.replace(host, cells=cells, cells_source=NOVA_DATABASE)
            )
        seen = dataclasses.replace(seen, hosts=tuple(changed))
        expected = {(1811886, "i-a", False), (1869804, "i-c", False)}
        self.assertEqual(expected, told(seen, "29.0.0"))


class Counted(tuple):  # noqa: SLOT001 - it counts
    """Hosts that count how often somebody goes through all of them."""

    passes = 0

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


class SharedSetsTest(testtools.TestCase):
    def test_hosts_are_compared_in_one_pass(self):
        seen = cloud("34.0.0").snapshot()
        each = len(seen.hosts)
        self.assertGreater(each, 2)
        hosts = Counted(seen.hosts)
        facts = CloudFacts(dataclasses.replace(seen, hosts=hosts))
        rule = RULES["shared-sets-differ"]
        for host in seen.hosts:
            list(rule.find(facts, host, {}))
        self.assertEqual(1, hosts.passes)


class PlansTest(testtools.TestCase):
    def drained(self, made, **wishes):
        planning = Planning(
            POLICY, made.snapshot(), settings_for(POLICY), PlanOptions(**wishes)
        )
        return goals.drain(planning, "hp1"), planning.snapshot

    def test_no_live_migration_that_fails(self):
        made = cloud("33.0.2", OLD, OLD)
        plan, _ = self.drained(made)
        self.assertEqual((), plan.moves)
        for name, reason in zip("ab", plan.reasons, strict=True):
            self.assertIn(f"{name} (i-{name}) stays: LP {PIN}", reason)
            self.assertIn(f"openstack server reboot --hard i-{name}", reason)
        # Either writes the XML anew.
        plan, seen = self.drained(made, cold=True)
        self.assertEqual(["cold"] * 2, [move.how for move in plan.moves])
        self.assertEqual([], list(bugs.notes(seen, plan.moves)))

    def test_one_that_may_fail_is_named(self):
        plan, seen = self.drained(cloud("33.0.2", OLD, NEW))
        self.assertEqual(2, plan.live)
        (note,) = bugs.notes(seen, plan.moves)
        self.assertIn(f"LP {PIN} may hit ", note)
        self.assertIn("a (i-a)", note)
        plan, seen = self.drained(cloud("33.0.2"))
        self.assertEqual([], list(bugs.notes(seen, plan.moves)))

    def test_none_is_begun_that_fails(self):
        class Run(migrate.MigrationRun):
            def _refresh(self, move):
                """Know all of the cloud already."""

        made = cloud("33.0.2")
        plan, _ = self.drained(made)
        for name in "ab":
            made.change_server(name, launched=OLD, created=OLD, updated=OLD)
        run = Run(None, POLICY, made.snapshot(), begin("", "", plan.moves))
        error = self.assertRaises(migrate.StoppedError, run._checked, 0)
        self.assertIn(f"LP {PIN}: ", str(error))

    def test_nodes_in_placement(self):
        for release, expected in (("32.2.1", True), ("34.0.0", False)):
            made = cloud(release)
            made.change_inventories("hp1", **{const.RC_CELL_CPU: Inventory(20, 20)})
            plan, _ = self.drained(cloud(release))
            noted = " ".join(bugs.notes(made.snapshot(), plan.moves))
            self.assertEqual(expected, "LP 2153425 may hit" in noted, noted)
            # A plan counts on the node to which nova-compute then takes them.
            for wishes, lost in ((PlanOptions(), expected), (PlanOptions(True), False)):
                seen = made.snapshot()
                planning = Planning(POLICY, seen, settings_for(POLICY), wishes)
                mine = seen.servers_by_host["hp1"]
                self.assertEqual({lost}, set(map(planning.loses_limits, mine)))
