# SPDX-License-Identifier: Apache-2.0

import dataclasses
import shlex

import testtools

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.diagnose.survey import ProposalError, survey
from nova_perfvm.facts.snapshot import Aggregate
from nova_perfvm.policy import loader
from tests import programs
from tests.unit.diagnose.audit.test_checks import small
from tests.unit.diagnose.explain.test_explain import UNITS
from tests.unit.diagnose.survey import clouds
from tests.unit.facts.snapshot.clouds import Cloud, blind


def figures(found):
    """Return used, free, unfit and possible slots."""
    slots = found.slots
    return slots.used, slots.free, slots.unfit, found.possible


class FiguresTest(testtools.TestCase):
    def test_slots(self):
        found = survey(clouds.pools().snapshot())
        # p0 is full, p1 and p2 have small ones beside, p3 is empty; o1 is open.
        self.assertEqual((3, 2, 3, 2), figures(found))
        hosts = {host.view.name: host for host in found.hosts}
        self.assertEqual(("dedicated", 2), (hosts["p3"].mode, hosts["p3"].slots.free))
        self.assertEqual(("open", 2, 1), (hosts["o1"].mode, hosts["o1"].possible, 1))
        self.assertEqual(1, hosts["p1"].others)
        found = survey(clouds.empty().snapshot())
        self.assertEqual((0, 0, 0, 6), figures(found))
        kinds = {(host.shape, host.mode) for host in found.hosts}
        self.assertEqual({("2x16x2", "open")}, kinds)
        # A pinned VM has a slot of a host without CPU sets: one more is possible.
        cloud = clouds.PlainCloud()
        cloud.add_flavor("db.20", 20, 128, clouds.PINNED)
        cloud.add_open_host("o1")
        cloud.add_pinned("a", "o1", "db.20")
        self.assertEqual((1, 0, 0, 1), figures(survey(cloud.snapshot())))

    def test_no_slot_counts_twice(self):
        """Elastic hosts have no CPU sets, and slots all the same: six here."""
        cloud = Cloud(UNITS)
        for name in ("e1", "e2", "e3"):
            cloud.add_elastic(name)
        for number in range(2):
            cloud.add_hp(f"a{number}", "e1", 20 * number, number)
        cloud.add_hp("b", "e2")
        cloud.add_general("g", "e3")
        cloud.allocate_units("i-g", "e3")
        for server, child in (("a0", "e1_perfvm_a"), ("a1", "e1_perfvm_b")):
            cloud.allocate(f"i-{server}", child, {const.RC_UNIT: 1000})
        cloud.allocate("i-b", "e2_perfvm_a", {const.RC_UNIT: 1000})
        self.assertEqual((3, 1, 2, 0), figures(survey(cloud.snapshot(), UNITS)))

    def test_hosts_that_show_nothing(self):
        found = survey(blind(clouds.pools().snapshot()))
        self.assertIsNone(found.policy)
        self.assertIn("no host shows its NUMA nodes", found.not_proposed)
        self.assertEqual(((), ()), (found.findings, found.steps(())))
        self.assertIn(
            "slots are not counted: 5", " ".join(gap.observed for gap in found.gaps)
        )
        self.assertEqual((0, 0, 0, 0), figures(found))


class ViolationsTest(testtools.TestCase):
    def test_what_stands_beside_each_other(self):
        found = survey(clouds.pools().snapshot())
        by_subject = {(f.code, f.subject): f for f in found.findings}
        self.assertIn((codes.CLASSES_MIXED, "p1"), by_subject)
        self.assertNotIn((codes.CLASSES_MIXED, "p0"), by_subject)
        # Where VMs of another size are alone they are in nobody's way, and keep a slot.
        stranded = by_subject["audit.classless_pinned", "e (i-e)"]
        self.assertEqual("", stranded.remedy)
        self.assertEqual(codes.CLASSES_MIXED, found.findings[0].code)

    def test_what_is_no_violation_before_it_is_taken_in(self):
        cloud = clouds.PlainCloud()
        specs = clouds.PINNED | {"hw:vif_multiqueue_enabled": "true"}
        specs |= {"hw:cpu_thread_policy": "prefer", "hw:numa_nodes": "1"}
        cloud.add_flavor("db.20", 20, 128, specs)
        cloud.add_host("h1")
        cloud.add_pinned("a", "h1", "db.20")
        self.assertEqual((), survey(cloud.snapshot()).findings)
        # One queue for all vCPUs is.
        cloud.change_server("a", extra_specs=clouds.PINNED)
        (code,) = {f.code for f in survey(cloud.snapshot()).findings} - {
            codes.FLAVOR_CHANGED
        }
        self.assertEqual("audit.no_multiqueue", code)

    def test_nobody_is_accused_of_what_was_not_seen(self):
        cloud = clouds.pools()
        for name in "abc":
            cloud.change_server(name, cells=None, pinned=None)
        found = survey(cloud.snapshot())
        self.assertNotIn(codes.NOT_PINNED, {f.code for f in found.findings})
        self.assertEqual(20, found.vm_class.vcpus)


class TakenInTest(testtools.TestCase):
    def test_it_is_judged_as_it_is(self):
        found = survey(small().snapshot())
        self.assertTrue(found.taken_in)
        self.assertEqual("high-performance", found.vm_class.name)
        self.assertEqual("slots", found.policy.placement)
        self.assertEqual((2, 0, 0), figures(found)[:3])

    def test_a_label_or_a_trait_is_enough_and_a_few_vms_of_a_class_are_not(self):
        self.assertFalse(survey(clouds.pools().snapshot()).taken_in)
        label = {const.CLASS_KEY: "high-performance"}
        aggregate = Aggregate(1, "u", "hp", label, frozenset({"p0"}))
        traits = frozenset({const.TRAIT_HIGH_PERFORMANCE})
        for change in (
            lambda cloud: cloud.parts.update(aggregates=(aggregate,)),
            lambda cloud: cloud.change_provider("p0", traits=traits),
        ):
            cloud = clouds.pools()
            change(cloud)
            self.assertTrue(survey(cloud.snapshot()).taken_in)
        cloud = clouds.pools()
        pinned = [s.name for s in cloud.snapshot().servers if s.pinned]
        self.assertGreater(len(pinned), 2)
        for number, name in enumerate(pinned, 1):
            named = {**cloud.servers[name].extra_specs, **label}
            cloud.change_server(name, extra_specs=named)
            taken_in = survey(cloud.snapshot()).taken_in
            self.assertEqual(2 * number > len(pinned), taken_in)

    def test_with_a_policy_none_is_proposed(self):
        policy = loader.load()
        found = survey(clouds.pools().snapshot(), policy)
        self.assertIsNone(found.proposal)
        self.assertEqual(policy, found.policy)
        self.assertEqual(3, found.slots.used)
        none = dataclasses.replace(policy, classes=policy.classes[1:])
        snapshot = clouds.pools().snapshot()
        self.assertRaises(ProposalError, survey, snapshot, none)


class StepsTest(testtools.TestCase):
    def commands(self, cloud):
        found = survey(cloud.snapshot())
        for step in found.steps(sorted(host.view.host for host in found.hosts)):
            yield from step.commands.splitlines()

    def test_commands_are_ones_that_their_parsers_take(self):
        seen = set()
        for make in clouds.ALL:
            for line in self.commands(make()):
                typed = line.replace("--memory-gb GB", "--memory-gb 64")
                program, *words = shlex.split(typed, comments=True) or [""]
                if program == "openstack" and words[0] == "perfvm":
                    words = words[1:]
                elif program != "nova-perfvm":
                    continue
                name = " ".join(words[:2]) if words[0] != "audit" else "audit"
                parser = programs.parser(program, name)
                parser.parse_args(words[len(name.split()) :])
                seen.add(name)
        self.assertEqual(
            {
                *("policy check", "host config", "flavor sync", "plan drain"),
                *("host enroll", "audit"),
            },
            seen,
        )

    def test_pinned_vms_go_on_coming_to_hosts_without_cpu_sets(self):
        """As long as there are such hosts; only Nova's fallback query finds them."""
        line = "disable_fallback_pcpu_query = True"
        cloud = clouds.pools()
        self.assertNotIn(line, list(self.commands(cloud)))
        self.assertIn(line, list(self.commands(clouds.divided())))

    def test_a_list_of_filters_is_to_be_kept(self):
        lines = list(self.commands(clouds.pools()))
        (number,) = [n for n, found in enumerate(lines) if "enabled_filters =" in found]
        self.assertIn("If your list differs, keep it", lines[number - 1])

    def test_hosts_are_drained_first_and_take_vms_again_when_all_is_done(self):
        for make in clouds.ALL:
            lines = list(self.commands(make()))
            drained = {x.split()[4] for x in lines if " plan drain " in x}
            enabled = {x.split()[5]: n for n, x in enumerate(lines) if "--enable" in x}
            disabled = {x.split()[5] for x in lines if "--disable" in x}
            self.assertEqual(disabled, enabled.keys())
            self.assertEqual(disabled, drained)
            for host, number in enabled.items():
                before = [x for x in lines[:number] if host in x.split()]
                after = [x for x in lines[number + 1 :] if host in x.split()]
                self.assertTrue(any("host config" in x for x in before))
                self.assertEqual([], after)

    def test_hosts_that_cost_least_come_first(self):
        lines = [line for line in self.commands(clouds.pools()) if " add host " in line]
        named = [line.split()[-1] for line in lines]
        self.assertEqual(["p0", "p3"], sorted(named[:2]))
        self.assertEqual(3, len(named))

    def test_names_are_quoted(self):
        cloud = clouds.empty()
        cloud.add_open_host("a; reboot")
        self.assertIn("'a; reboot'", "\n".join(self.commands(cloud)))
