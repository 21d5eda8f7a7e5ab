# SPDX-License-Identifier: Apache-2.0
"""Machines that ssh reaches are waited for, loaded, collected, measured and judged.

They are network namespaces of this machine, so no ratio means anything.
"""

import json
import os
from dataclasses import replace

import yaml

from nova_perfvm.findings import exit_code
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import run
from nova_perfvm.measure.bench.connection import TargetError
from nova_perfvm.measure.bench.record import Record
from nova_perfvm.measure.bench.run import NothingToRunError
from nova_perfvm.measure.bench.scenario import Target
from nova_perfvm.measure.prove import loaded, plan, proof
from nova_perfvm.measure.prove.plan import Machines
from nova_perfvm.policy import loader
from tests.bench import machine
from tests.bench.test_run import TOOLS, RunCase

ROLES = ("host", "vm1", "vm2")


class MachinesTest(RunCase):
    """From the first look to the verdict."""

    def setUp(self):
        super().setUp()
        self.need(*TOOLS, "ip", machine.SSHD)
        if os.geteuid():
            self.skipTest("network namespaces need root")
        document = loader.load().as_document()
        vm_class = document["classes"]["high-performance"]
        vm_class["vcpus"] = 1
        vm_class["flavors"]["sizes"] = [{"vcpus": 1, "memory_gb": 1, "root_gb": 0}]
        self.policy = loader.parse(yaml.safe_dump(document, sort_keys=False))
        self.flavor = generate_flavors(self.policy)[0]
        self.vm_class = self.policy.get_class(self.flavor.class_name)
        found = {role: self.useFixture(machine.Machine(f"{role}-x")) for role in ROLES}
        self.targets = {
            role: Target(
                *(role, "guest" if role.startswith("vm") else "host"),
                f"root@{one.address}",
                (*one.options, "-i", str(one.key), "-p", str(machine.PORT)),
            )
            for role, one in found.items()
        }
        # This machine, which all of them reach.
        self.targets[plan.GENERATOR] = Target(plan.GENERATOR, "host")
        self.machines = Machines(
            self.targets["host"],
            loaded.nodes(self.targets["host"]),
            (self.targets["vm1"], self.targets["vm2"]),
            self.targets[plan.GENERATOR],
            found["vm1"].gateway,
        )
        self.said = []

    def tell(self, what, done, total):
        self.said.append(f"{what} {done}/{total}")

    def planned(self):
        """Return the scenario of a proof, as short as may be."""
        whole = plan.scenario_of(self.flavor, self.vm_class, self.machines, quick=True)
        tools = plan._tools(self.flavor, self.machines, 1, None)
        return replace(whole, tools=tools, repeats=1)

    def collect(self, seconds=loaded.LOAD_S):
        tools = plan.load(self.flavor, self.machines, seconds)
        memory_mb = self.flavor.memory_mb
        return loaded.collect(self.machines, tools, memory_mb, self.said.append)

    def test_a_proof(self):
        scenario = self.planned()
        loaded.await_ready(scenario.targets, scenario, 60, self.tell)
        path = str(self.directory / "proof.json")
        record = Record.begin(f"{path}.run", scenario)
        run.run(scenario, record, self.tell, self.said.append)
        self.assertEqual([], record.run["failures"])
        self.said.clear()
        host, guests = self.collect()
        self.assertEqual([], self.said)
        self.assertEqual(["vm1-x", "vm2-x"], [one["hostname"] for one in guests])
        self.assertTrue(host["later"])
        judged = proof.write(
            path,
            policy=loader.dump(self.policy),
            flavor=self.flavor.name,
            seen=(host, guests),
            measured=samples.load([f"{path}.run"]),
            baseline=None,
            made_at="2026-11-22T10:30:00+00:00",
        )
        line = proof.verdict(judged)
        # No VM runs here.
        self.assertRegex(line, r"^(REFUTED|NOT PROVEN) \S+ on host-x: ")
        codes = {one.code for one in judged.reasons}
        self.assertNotIn("certify.same_time", codes, judged.reasons)
        self.assertNotIn("certify.baseline_alone", codes, judged.reasons)
        status, stdout, stderr = self.run_it(
            "certify", "--proof", path, "--output", str(self.directory / "record.json")
        )
        self.assertEqual(exit_code(judged.level, strict=True), status, stderr)
        self.assertIn(f"flavor {self.flavor.name}: ", stdout)
        reasons = json.loads((self.directory / "record.json").read_text())["reasons"]
        self.assertEqual(len(judged.reasons), len(reasons))

    def test_what_cannot_be_proven(self):
        # The load is over before anything was seen.
        error = self.assertRaises(TargetError, self.collect, 1)
        self.assertIn("no load while collecting", str(error))
        self.assertIn("vm1: ", str(error))
        # Nobody serves there.
        self.machines = replace(self.machines, address="127.0.0.1")
        error = self.assertRaises(TargetError, self.collect)
        self.assertRegex(str(error), "vm1: iperf3 tcp send: no load .*[Cc]onnect")

        gone = replace(self.targets["vm2"], ssh_options=("-p", "9", "-F", "none"))
        error = self.assertRaises(
            NothingToRunError,
            loaded.await_ready,
            [self.targets["vm1"], gone],
            self.planned(),
            0,
            self.tell,
        )
        self.assertIn("vm2", str(error))
        self.assertNotIn("vm1", str(error))
        self.assertRegex(self.said[-1], r"^waiting: vm2 \(.*\): exit code 255.* 1/2$")
