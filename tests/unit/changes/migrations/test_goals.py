# SPDX-License-Identifier: Apache-2.0
"""Plans, judged step by step by what shares nothing with those that made them."""

import dataclasses
import random

import fixtures
import testtools
from hypothesis import event, given, settings
from hypothesis import strategies as st

from nova_perfvm import solver
from nova_perfvm.changes.migrations import goals, model
from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.diagnose import audit
from nova_perfvm.diagnose.explain import request_of
from nova_perfvm.diagnose.verdicts import judge, settings_for
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.snapshot import Migration
from nova_perfvm.findings import Level
from nova_perfvm.generate.properties import Properties
from tests.unit.changes.migrations import clouds
from tests.unit.generate import plugins


def planning_of(policy, snapshot, **wishes):
    # Machines on which many tests run at once are slow.
    wishes = {"time_limit_s": 60.0, **wishes}
    return Planning(policy, snapshot, settings_for(policy), PlanOptions(**wishes))


def found_by_audit(policy, snapshot):
    """Return the codes of what the audit finds, but for what it cannot know."""
    findings = audit.run(audit.Subject(policy, snapshot)).findings
    return {finding.code for finding in findings if finding.level > Level.UNKNOWN}


def taking(policy, snapshot, flavor):
    """Return the hosts that take a new server, by the verdicts of explain."""
    request, _ = request_of(snapshot, flavor=flavor)
    rules = settings_for(policy)
    return tuple(
        view.name
        for view in views_of(snapshot)
        if judge(policy, request, view, rules).accepted
    )


class PlanCase(testtools.TestCase):
    def walk(self, policy, snapshot, plan):
        """Make all migrations; look at the cloud after each."""
        before, start = found_by_audit(policy, snapshot), snapshot
        now = Arrangement(planning_of(policy, snapshot))
        for step in plan.moves:
            server = snapshot.server_by_id[step.server]
            self.assertEqual(step.source, server.host or "")
            if step.target:
                verdict = model.allows(policy, snapshot, server, step.target)
                self.assertEqual((), verdict.reasons, step)
            now = now.made([step])
            before_it, snapshot = snapshot, now.snapshot()
            self.assertEqual([], list(clouds.torn(before_it, snapshot)), step)
            self.assertEqual([], clouds.complaints(policy, snapshot), step)
            self.assertEqual(set(), found_by_audit(policy, snapshot) - before, step)
        told = {
            group.id
            for group in start.server_groups
            if any(str(group) in note for note in plan.notes)
        }
        self.assertEqual(clouds.worsened(start, snapshot), told)
        return snapshot


class RandomCloudsTest(PlanCase):
    @settings(max_examples=20, deadline=None)
    @given(st.integers(0, 100_000), st.integers(1, 3))
    def test_room_for_vms(self, seed, more):
        scene = clouds.scene(random.Random(seed))
        request, _ = request_of(scene.snapshot, flavor=scene.flavor)
        planning = planning_of(scene.policy, scene.snapshot)
        kind = planning.kind_of_request(request)
        have = Arrangement(planning).room(kind, 1000)
        plan = goals.free(planning, request, have + more)
        event(f"{plan.gained} of {plan.wanted}")
        self.assertEqual(more, plan.wanted)
        self.assertEqual(bool(plan.reasons), plan.gained < more)
        after = self.walk(scene.policy, scene.snapshot, plan)
        # As many as it says come in, by explain's verdict, and no more.
        now = Arrangement(planning_of(scene.policy, after))
        for left in range(have + plan.gained, 0, -1):
            hosts = taking(scene.policy, now.snapshot(), scene.flavor)
            self.assertTrue(hosts, left)
            now = clouds.joined(now, kind, hosts[0])
        if plan.gained < more:
            self.assertEqual((), taking(scene.policy, now.snapshot(), scene.flavor))

    @settings(max_examples=12, deadline=None)
    @given(st.integers(0, 100_000))
    def test_an_empty_host(self, seed):
        scene = clouds.scene(random.Random(seed))
        host = random.Random(seed).choice(scene.snapshot.hosts).host
        plan = goals.drain(planning_of(scene.policy, scene.snapshot), host)
        before = scene.snapshot.servers_by_host[host]
        after = self.walk(scene.policy, scene.snapshot, plan)
        self.assertEqual(plan.after, after)
        left = after.servers_by_host[host]
        event(f"{plan.gained} of {plan.wanted}")
        self.assertEqual(len(before) - len(left), plan.gained)
        self.assertEqual(len(left), len(plan.reasons))

    @settings(max_examples=12, deadline=None)
    @given(st.integers(0, 100_000), st.integers(1, 6))
    def test_whole_slots(self, seed, budget):
        scene = clouds.scene(random.Random(seed))
        planning = planning_of(scene.policy, scene.snapshot, max_moves=budget)
        (vm_class,) = scene.policy.pinned_classes
        plan = goals.defragment(planning, vm_class)
        self.assertLessEqual(len(plan.moves), budget)
        self.walk(scene.policy, scene.snapshot, plan)
        event(f"{plan.gained}")
        self.assertEqual(bool(plan.moves), plan.gained > 0)


class FewHostsCase(PlanCase):
    """Dedicated hosts of one or two slots, and what is on them."""

    def setUp(self):
        super().setUp()
        self.policy = clouds.policy()
        self.cloud = clouds.Cloud(self.policy)

    def add(self, name, slots, memory_gb, *sizes_gb):
        self.cloud.add_host(name, shape=f"1x{slots * 4}", memory_gb=memory_gb)
        for number, size in enumerate(sizes_gb):
            self.cloud.add_small(f"{name}-{size}", name, number * 4, 0, f"hp{size}")

    def build(self, **hosts):
        """Add hosts: (slots, memory, sizes of its VMs in GiB) by name."""
        for name, host in hosts.items():
            self.add(name, *host)

    def free(self, flavor, count=1, **wishes):
        request, _ = request_of(self.cloud.snapshot(), flavor=flavor)
        return goals.free(self.planning(**wishes), request, count)

    def planning(self, **wishes):
        return planning_of(self.policy, self.cloud.snapshot(), **wishes)

    def steps(self, plan):
        return [(move.name, move.source, move.target) for move in plan.moves]


class FreeTest(FewHostsCase):
    def test_the_cheapest_way(self):
        one = {"a": (1, 64, 16), "b": (1, 32)}
        two = {"a": (1, 64, 16), "b": (1, 64, 32), "c": (1, 32)}
        pushing = {"a": (1, 64, 32), "b": (1, 32, 16), "c": (1, 16)}
        excluded = {"excluded": frozenset({"i-a-16", "b-32"})}
        for hosts, count, wishes, steps, gained, words in (
            (one, 1, {}, ["a-16 a b"], (1, 1), ""),
            ({"a": (1, 64)}, 1, {}, [], (0, 0), "there is room for 1 of 1 already"),
            ({"a": (1, 64, 16)}, 1, {}, [], (0, 1), "room for 1, only for 0"),
            (
                {"a": (1, 64, 32), "b": (1, 64, 16), "c": (1, 32)},
                1,
                {},
                ["b-16 b c"],
                (1, 1),
                "",
            ),
            # Half a plan.
            (two, 2, {}, ["a-16 a c"], (1, 2), "room for 2, only for 1"),
            # It goes where 48 GiB stay free, not to the host that is packed first.
            (
                {"a": (1, 64, 16), "b": (2, 64), "c": (1, 48)},
                3,
                {},
                ["a-16 a b"],
                (1, 1),
                "there is room for 2 of 3 already",
            ),
            # One pushes another on, where two migrations are allowed.
            (pushing, 1, {}, ["b-16 b c", "a-32 a b"], (1, 1), ""),
            (pushing, 1, {"max_moves": 1}, [], (0, 1), "only for 0"),
            (two, 1, {"excluded": frozenset({"i-a-16"})}, ["b-32 b c"], (1, 1), ""),
            (two, 1, {"excluded": frozenset({"c"})}, [], (0, 1), ""),
            (two, 1, excluded, [], (0, 1), "it is excluded"),
        ):
            self.cloud = clouds.Cloud(self.policy)
            self.build(**hosts)
            plan = self.free("hp48", count, **wishes)
            self.assertEqual(steps, [" ".join(step) for step in self.steps(plan)])
            self.assertEqual(gained, (plan.gained, plan.wanted))
            self.assertEqual(gained[0] == gained[1], plan.complete)
            self.assertIn(words, "; ".join(plan.reasons + plan.notes))

    def test_a_request_that_no_host_takes(self):
        self.build(a=(1, 64))
        request, _ = request_of(self.cloud.snapshot(), flavor="hp48")
        for words, wrong in (
            ("no host is in zone mars", {"availability_zone": "mars"}),
            ("of its class: the", {"facts": request.facts._replace(vcpus=3)}),
        ):
            asked = dataclasses.replace(request, **wrong)
            (why,) = goals.free(self.planning(), asked, 1).reasons
            self.assertIn(words, why)

    def test_how_servers_are_migrated(self):
        self.build(a=(1, 64, 16), c=(1, 32))
        (move,) = self.free("hp48").moves
        self.assertTrue(move.live)
        self.assertEqual(
            "openstack --os-compute-api-version 2.30 server migrate --live-migration "
            "--host c --wait i-a-16",
            model.command(move),
        )
        (move,) = self.free("hp48", cold=True).moves
        self.assertEqual(
            "openstack --os-compute-api-version 2.56 server migrate --host c --wait "
            "i-a-16\nopenstack server migration confirm i-a-16",
            model.command(move),
        )
        self.cloud.change_server("a-16", status="SHUTOFF")
        self.assertFalse(self.free("hp48").moves[0].live)
        self.cloud.change_server("a-16", status="PAUSED")
        plan = self.free("hp48", cold=True)
        self.assertIn("it is PAUSED: it can be migrated live only", plan.reasons[-1])

    def test_who_cannot_be_moved(self):
        self.build(a=(1, 64, 16), c=(1, 32))
        specs = self.cloud.flavors["hp16"].extra_specs
        migration = Migration("m", "i-a-16", "migration", "finished")
        evacuation = Migration("m", "i-a-16", "evacuation", "done", "c")
        for reason, server, parts in (
            ("it is ERROR: openstack server reboot --hard", {"status": "ERROR"}, {}),
            ("it is spawning: wait", {"task": "spawning"}, {}),
            (
                "plans do not model the resources that Nova requests for accel:",
                {"extra_specs": {**specs, "accel:device_profile": "gpu"}},
                {},
            ),
            ("a migration of it is not over", {}, {"migrations": (migration,)}),
            ("it was evacuated from a host", {}, {"migrations": (evacuation,)}),
            ("it is not of its class: the", {"vcpus": 3}, {}),
        ):
            kept = dict(self.cloud.servers), dict(self.cloud.parts)
            self.cloud.change_server("a-16", **server)
            self.cloud.parts |= parts
            plan = self.free("hp48")
            self.assertEqual((), plan.moves)
            self.assertIn(reason, plan.reasons[-1])
            self.cloud.servers, self.cloud.parts = kept

    def test_a_host_that_is_down_and_another_zone(self):
        self.build(a=(1, 64, 16), c=(1, 32))
        hosts = self.cloud.hosts
        for name in "ac":
            hosts[name] = dataclasses.replace(hosts[name], availability_zone=name)
        self.cloud.change_server("a-16", availability_zone="a")
        self.assertEqual((), self.free("hp48").moves)
        self.assertEqual(1, len(self.free("hp48", any_zone=True).moves))
        self.cloud.change_server("a-16", bound_zone="a")
        self.assertEqual((), self.free("hp48", any_zone=True).moves)
        # It is in another one than it is bound to.
        self.cloud.change_server("a-16", bound_zone="c")
        self.assertEqual(1, len(self.free("hp48").moves))
        hosts["a"] = dataclasses.replace(hosts["a"], up=False)
        plan = goals.drain(self.planning(), "a")
        self.assertIn("nova-compute on a does not run", plan.reasons[0])


class PluginTest(FewHostsCase):
    def test_flavors_of_a_plugin(self):
        """No host has the trait that a plugin adds to the class's flavors."""
        asks = Properties({"trait:CUSTOM_ACME": "required"})
        (vm_class,) = self.policy.pinned_classes
        self.build(a=(2, 48, 48), b=(1, 64))
        plan = goals.defragment(self.planning(), vm_class)
        self.assertEqual([("a-48", "a", "b")], self.steps(plan))
        with plugins.installed(acme=lambda *_: asks):
            plan = goals.defragment(self.planning(), vm_class)
        self.assertEqual([], self.steps(plan))


class SimpleSearchTest(FreeTest):
    """The same without the solver."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatchObject(solver, "installed", lambda: False))

    def test_the_cheapest_way(self):
        self.build(a=(1, 64, 16), b=(1, 64, 32), c=(1, 32))
        plan = self.free("hp48")
        self.assertEqual([("a-16", "a", "c")], self.steps(plan))
        self.assertIn("HiGHS is not installed", "; ".join(plan.notes))

    def test_random_clouds(self):
        gained = 0
        for seed in range(12):
            scene = clouds.scene(random.Random(seed))
            planning = planning_of(scene.policy, scene.snapshot, max_moves=4)
            (vm_class,) = scene.policy.pinned_classes
            host = scene.snapshot.hosts[0].host
            for plan in (
                goals.defragment(planning, vm_class),
                goals.drain(planning, host),
            ):
                self.walk(scene.policy, scene.snapshot, plan)
                gained += plan.gained
        self.assertGreater(gained, 12)


class BoundTest(FewHostsCase):
    def test_what_the_solver_has_proven(self):
        for hosts, words in (
            (
                {"a": (1, 64, 16), "c": (1, 32)},
                "1 more VM by 1 migration; no plan gains",
            ),
            ({"a": (1, 64, 16), "c": (1, 8)}, "no plan exists"),
            # They could only trade hosts.
            ({"a": (2, 64, 48), "b": (1, 48, 32)}, "at most 1 more VM is possible"),
        ):
            self.cloud = clouds.Cloud(self.policy)
            self.build(**hosts)
            flavor = "hp32" if "b" in hosts else "hp48"
            self.assertIn(words, "; ".join(self.free(flavor).notes))

    def test_a_server_in_between(self):
        """Two servers trade hosts by way of a third host."""
        self.build(a=(2, 64, 48), b=(1, 48, 32), c=(1, 32))
        plan = self.free("hp32", 2)
        self.assertTrue(plan.complete, plan.reasons)
        self.walk(self.policy, self.cloud.snapshot(), plan)


class SharedCPUsTest(PlanCase):
    """A host with two general servers, a busy host and an idle one."""

    def setUp(self):
        super().setUp()
        self.policy = clouds.policy()
        builder = clouds.Builder(random.Random(0), self.policy)
        self.cloud = builder.cloud
        for name in ("drained", "busy", "idle"):
            self.cloud.add_host(name, "shared")
        for flavor, host in (("g4", "drained"), ("g4", "drained"), ("g8", "busy")):
            self.assertTrue(builder.add(flavor, host))

    def drain(self, **wishes):
        plan = goals.drain(
            planning_of(self.policy, self.cloud.snapshot(), **wishes), "drained"
        )
        self.walk(self.policy, self.cloud.snapshot(), plan)
        return sorted(move.target for move in plan.moves), "; ".join(plan.notes)

    def test_the_idle_host_first(self):
        for installed in (True, False):
            patch = fixtures.MockPatchObject(solver, "installed", lambda i=installed: i)
            with patch:
                targets, said = self.drain()
                self.assertEqual(["idle", "idle"], targets)
                self.assertIn("at most 4 vCPUs for each CPU (allocation_ratio", said)
                self.assertIn("8 of 16 VCPU (0.5 for each CPU, allocation", said)
                targets, said = self.drain(max_ratio=0.25)
                self.assertEqual(["idle"], targets)
                self.assertIn("at most 0.25 vCPUs for each CPU (--max-ratio)", said)
                _, said = self.drain(max_ratio=5)
                self.assertIn("at most 4 vCPUs for each CPU (allocation_ratio", said)

    def test_a_solver_without_enough_time(self):
        """A slow machine builds the program only: the plan is that of the search."""
        targets, said = self.drain(time_limit_s=1e-9)
        self.assertEqual(["idle", "idle"], targets)
        self.assertNotIn("no plan", said)


class ElasticTest(PlanCase):
    def test_room_beyond_what_is_asked_for_makes_no_plan_cheaper(self):
        """One VM finds no room; hosts a and b would take two of them."""
        policy = clouds.policy("units", shapes=("1x4", "1x8", "2x8"))
        builder = clouds.Builder(random.Random(0), policy)
        for name, slots, flavors in (
            ("a", 2, ["g1", "g1", "g1"]),
            ("b", 2, ["g1", "g1", "g1"]),
            ("c", 1, ["g2"]),
            ("full", 2, ["g8"]),
            ("empty", 1, []),
        ):
            builder.cloud.add_elastic(name, slots, f"1x{4 * slots}", 64)
            for flavor in flavors:
                self.assertTrue(builder.add(flavor, name))
        snapshot = builder.cloud.snapshot()
        request, _ = request_of(snapshot, flavor="hp16")
        plan = goals.free(planning_of(policy, snapshot), request, 2)
        self.assertEqual((1, 1), (plan.gained, plan.wanted))
        self.assertEqual(["c"], [move.source for move in plan.moves])

    def test_a_plan_leaves_few_migrations_to_the_next(self):
        """Servers of the emptied host go to the fullest, for the next host's sake."""
        policy = clouds.policy("units", shapes=("1x4", "1x8", "2x8"))
        for installed in (True, False):
            patch = fixtures.MockPatchObject(solver, "installed", lambda i=installed: i)
            builder = clouds.Builder(random.Random(0), policy)
            for name, servers in (("a", 1), ("b", 2), ("c", 1)):
                builder.cloud.add_elastic(name, 2, "1x8", 64)
                for _ in range(servers):
                    self.assertTrue(builder.add("g1", name))
            vm_class = policy.pinned_classes[0]
            seen = builder.cloud.snapshot()
            with patch:
                for _ in range(2):
                    planning = planning_of(policy, seen, max_moves=1)
                    plan = goals.defragment(planning, vm_class)
                    self.assertEqual(["b"], [move.target for move in plan.moves])
                    seen = self.walk(policy, seen, plan)


class DrainTest(FewHostsCase):
    def drain(self, host, **wishes):
        return goals.drain(self.planning(**wishes), host)

    def test_all_leave_or_some_stay(self):
        hosts = {"a": (2, 64, 16, 32), "b": (1, 64), "c": (1, 64)}
        for targets, words in (("bc", ""), ("b", "stays: no host was found for it")):
            self.cloud = clouds.Cloud(self.policy)
            self.build(**{name: hosts[name] for name in ("a", *targets)})
            plan = self.drain("a")
            self.assertEqual((len(targets), 2), (plan.gained, plan.wanted))
            self.assertEqual(not words, plan.complete)
            self.assertEqual(set(targets), {move.target for move in plan.moves})
            self.assertIn(words, "".join(plan.reasons))

    def test_servers_that_may_still_come(self):
        self.build(a=(1, 64), c=(1, 64, 16))
        for words, status, *told in (
            ("c now, may come: wait", "MIGRATING", "running", "c", "a"),
            ("may come back: confirm", "VERIFY_RESIZE", "finished", "a", "c"),
        ):
            self.cloud.change_server("c-16", status=status)
            migration = Migration("m", "i-c-16", "migration", *told)
            self.cloud.parts["migrations"] = (migration,)
            plan = self.drain("a")
            self.assertFalse(plan.complete)
            self.assertIn(words, "".join(plan.reasons))

    def test_no_such_host(self):
        self.assertRaises(model.MoveError, self.drain, "x")
