# SPDX-License-Identifier: Apache-2.0
"""Only one run of the built-in scenario, in one session, is a proof."""

import copy
import json
from dataclasses import replace

import testtools

from nova_perfvm.measure.bench.record import RecordError
from nova_perfvm.measure.prove import proof, provenance
from nova_perfvm.measure.prove.inputs import BOOT, UUID
from tests.unit.measure import hosts
from tests.unit.measure.prove.sound import Case, scenario
from tests.unit.measure.prove.test_judge import with_fault

BOOT_OF_HOST = "compute1-0000-4000-8000-000000000000"


def of_scenario(change):
    """Return a fault: the scenario is another one."""
    return lambda run: change(run["scenario"])


def tool(key, **changes):
    return of_scenario(lambda scenario: scenario["tools"][key].update(changes))


def dropped(run):
    del run["steps"][40]


def twice(run):
    run["steps"].append(copy.deepcopy(run["steps"][40]))


def swapped(run):
    steps = run["steps"]
    steps[40]["key"], steps[41]["key"] = steps[41]["key"], steps[40]["key"]


def hosts_first(run):
    run["steps"].sort(key=lambda step: step["key"].split("/")[1])


def resumed(who=None, path="/proc/cmdline"):
    """Return a change: it is gone on with from the middle, one machine changed."""

    def change(run):
        session = copy.deepcopy(run["sessions"][0])
        session["started_at"] = run["steps"][60]["started_at"]
        if who is not None:
            session["targets"][who]["collected"]["files"][path] = "other\n"
        run["sessions"].append(session)

    return change


def failed_and_measured_later(run):
    """A step that failed is the last one, of a session of its own."""
    step = run["steps"].pop(40)
    session = copy.deepcopy(run["sessions"][0])
    session["started_at"] = step["started_at"] = "2026-11-22T09:57:00+00:00"
    run["steps"].append(step)
    run["sessions"].append(session)


def others(share, where=""):
    """Return a change: others took a share of the CPUs of the host's runs."""

    def change(run):
        for step in run["steps"]:
            for beside in step["beside"].values() if where in step["key"] else ():
                beside.update(others_s=share * 40 * 10.2, loudest="ceph-osd")

    return change


def ran_on(who, cpus):
    def change(run):
        for step in run["steps"]:
            if who in step["targets"]:
                step["affinity"][who] = cpus

    return change


def generator(files):
    """Return what exchanges the files that were collected on the generator."""

    def change(run):
        run["sessions"][0]["targets"]["generator"]["collected"] = {"files": files}

    return change


class NoProofTest(testtools.TestCase):
    def test_what_is_no_run_of_the_built_in_scenario(self):
        for _name, change, words in (
            ("quick", of_scenario(lambda s: s.update(repeats=5)), "5 rounds"),
            ("shorter runs", tool("sysbench_cpu", seconds=3), "takes 3 s, not 10"),
            ("fewer threads", tool("sysbench_cpu", threads=[1]), "other options"),
            ("no load", tool("cyclictest", loaded=False), "other options"),
            ("one way", tool("iperf3", directions=["send"]), "other options"),
            (
                "small working set",
                of_scenario(lambda s: s.update(working_set_mb=1)),
                "working_set_mb is 1",
            ),
            (
                "memory in caches",
                lambda run: run.update(working_set_mb=223),
                "223 MiB, of which caches hold a part",
            ),
            (
                "both host runs on a node",
                of_scenario(lambda s: s["targets"]["node1"].update(node=0)),
                "host runs on nodes ['0', '0']",
            ),
            (
                "both host runs on a node, by their affinity",
                ran_on("node1", "0-19"),
                "node1 ran on CPUs 0-19, not on those of node 1",
            ),
            (
                "AllowedCPUs= of its unit",
                ran_on("node0", "0-9"),
                "node0 ran on CPUs 0-9, not on those of node 0",
            ),
            (
                "affinity is not noted",
                lambda run: [step.pop("affinity") for step in run["steps"]],
                "ran on CPUs unknown",
            ),
            (
                "ceph-osd beside the baseline",
                others(0.031, "cpu"),
                "others took 3.1% of its CPUs in hosts/sysbench cpu/20, mostly ceph",
            ),
            ("a step is missing", dropped, "1 of 252 steps are missing"),
            ("a step is there twice", twice, "out of the order"),
            ("two steps swapped", swapped, "out of the order"),
            ("all of the host, then all VMs", hosts_first, "out of the order"),
            ("generator unseen", generator({}), "the generator is was not seen"),
            ("host generates", generator({BOOT: BOOT_OF_HOST}), "name a third machine"),
            (
                "VM generates",
                generator({BOOT: "other", UUID: hosts.UUIDS[0].upper()}),
                "name a third machine",
            ),
            ("host changed", resumed("node0"), "resumed after node0 changed"),
            ("host booted", resumed("node1", BOOT), "resumed after node1 changed"),
            ("VM booted", resumed("vm2", BOOT), "resumed after vm2 changed"),
        ):
            case = Case()
            change(case.run)
            judged = case.judged()
            self.assertEqual(3, judged.exit_status)
            self.assertFalse(judged.proven)
            self.assertIn(words, judged.no_proof[0])
            line = proof.line(judged)
            self.assertTrue(line.startswith("measured, not a proof: "), line)
            self.assertNotIn("PROVEN", line)
            self.assertNotIn("REFUTED", line)

    def test_a_failure_does_not_make_a_measurement_a_proof(self):
        case = with_fault("vm1: 4 queues on the host")
        case.run["scenario"]["repeats"] = 5
        judged = case.judged()
        self.assertEqual(3, judged.exit_status)
        self.assertNotIn("REFUTED", proof.line(judged))

    def test_what_remains_a_proof(self):
        for _name, change in (
            ("longer runs", tool("sysbench_cpu", seconds=12)),
            ("gone on with, nothing changed", resumed()),
            ("a failed step measured later", failed_and_measured_later),
        ):
            case = Case()
            change(case.run)
            self.assertEqual((), case.judged().no_proof)

    def test_others_above_one_percent_are_a_condition(self):
        for share, verdict in (
            (0.009, "PROVEN"),
            (0.011, "PROVEN with 1 condition"),
            (0.029, "PROVEN with 1 condition"),
        ):
            case = Case()
            others(share)(case.run)
            judged = case.judged()
            self.assertEqual(verdict, judged.verdict)
            for one in judged.conditions:
                self.assertIn("mostly ceph-osd", one.observed)

    def test_a_record_that_does_not_fit_what_it_is_made_of(self):
        record = Case().record()
        for _name, changes, words in (
            ("version", {"program": "0.0.1"}, "made by version 0.0.1"),
            ("scenario", {"scenario_sha256": "0" * 64}, "changed since"),
            ("order", {"order": record.made_of.order[::-1]}, "changed since"),
            ("host", {"boot_id": "other"}, "changed since"),
            ("VMs", {"vms": record.made_of.vms[::-1]}, "changed since"),
        ):
            made_of = replace(record.made_of, **changes)
            judged = proof.judged(replace(record, made_of=made_of))
            self.assertIn(words, judged.no_proof[0])

    def test_it_carries_what_it_was_made_of(self):
        case = Case()
        made_of = case.record().made_of
        self.assertEqual(provenance.PROGRAM, made_of.program)
        self.assertEqual(tuple(s["key"] for s in case.run["steps"]), made_of.order)
        self.assertEqual(case.host.files[BOOT].strip(), made_of.boot_id)
        self.assertEqual(2, len(set(made_of.vms)))

    def test_a_run_that_was_not_written_here(self):
        for key in ("scenario", "seed", "sessions", "steps", "working_set_mb"):
            case = Case()
            del case.run[key]
            self.assertRaises(RecordError, case.judged)
        case = Case()
        case.run = json.loads("{}")
        self.assertRaises(RecordError, case.judged)


class BoundTest(testtools.TestCase):
    def test_a_class_of_two_nodes(self):
        """Each run of the host is bound to as many nodes as a VM has."""
        case = Case()
        changed = replace(
            scenario(),
            targets=tuple(
                replace(one, more_nodes=(1,)) if one.name == "node0" else one
                for one in scenario().targets
            ),
        )
        nodes = {0: frozenset(range(20)), 1: frozenset(range(20, 40))}
        found = list(provenance._unbound(case.run, changed, nodes))
        self.assertIn("node0 ran on CPUs 0-19, not on those of node 0, 1", found[0])
        for step in case.run["steps"]:
            step["affinity"]["node0"] = "0-39"
        self.assertEqual([], list(provenance._unbound(case.run, changed, nodes)))
