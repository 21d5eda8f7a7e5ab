# SPDX-License-Identifier: Apache-2.0
"""Machines that ssh reaches are waited for, loaded, collected, measured and judged.

They are network namespaces of this machine, so no ratio means anything.
"""

import os
import shutil
import signal
import threading
import time
from dataclasses import replace

import yaml

from nova_perfvm.findings import CANNOT_TELL
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import run
from nova_perfvm.measure.bench.connection import TargetError
from nova_perfvm.measure.bench.record import Record
from nova_perfvm.measure.bench.run import NothingToRunError
from nova_perfvm.measure.bench.scenario import Target, Tools
from nova_perfvm.measure.bench.tools import sysbench
from nova_perfvm.measure.prove import loaded, plan, proof
from nova_perfvm.measure.prove.plan import Machines
from nova_perfvm.policy import loader
from tests.measure import machine
from tests.measure.test_run import PATIENCE_S, TOOLS, RunCase
from tests.unit.measure.prove import records

ROLES = ("host", "vm1", "vm2")
# Ends the connection that it was started through, as often as there are letters.
DYING = """#!/bin/sh
case $* in {but}) exec {real} "$@";; esac
left=$(cat {times})
if [ -n "$left" ]; then
  printf %s "${{left#x}}" > {times}
  process=$$
  while [ "$(cat /proc/$process/comm)" != sshd ]; do
    process=$(awk '{{print $4}}' /proc/$process/stat)
  done
  kill -9 "$process"
fi
exec {real} "$@"
"""


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
        self.found = found
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
        self.assertEqual(["vm1-x", "vm2-x"], [one.hostname for one in guests])
        self.assertTrue(host.later)
        made = proof.make(
            policy=loader.dump(self.policy),
            flavor=self.flavor.name,
            seen=(host, guests),
            measured=samples.load(f"{path}.run"),
        )
        judged = proof.judged(made)
        proof.write(path, made, judged)
        # One round of a second each is no proof.
        self.assertEqual(CANNOT_TELL, judged.exit_status)
        self.assertIn("not the built-in scenario: ", judged.no_proof[0])
        self.assertNotIn("out of the order", " ".join(judged.no_proof))
        line = proof.line(judged)
        self.assertRegex(line, r"^measured, not a proof: .* \S+ on host-x: ")
        codes = {one.code for one in judged.reasons}
        self.assertNotIn("proof.same_time", codes, judged.reasons)
        self.assertNotIn("proof.baseline_alone", codes, judged.reasons)
        again = proof.judged(records.read(path))
        self.assertEqual(judged.reasons, again.reasons)

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

    def on_the_disk(self):
        """Return a scenario of the real size, and a directory for its files."""
        work = self.on_disk()
        return work, plan.scenario_of(
            *(self.flavor, self.vm_class, self.machines), directory=str(work)
        )

    def test_fio_leaves_no_files_after_ctrl_c(self):
        """While it writes four files of 1 GiB on each machine."""
        work, scenario = self.on_the_disk()
        self.assertEqual(
            ("1g", 4), (scenario.tools.fio.size, scenario.tools.fio.numjobs)
        )
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)

        def interrupt():
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline and not self.written.is_set():
                if len([*work.glob("perfvm-*/test.*")]) > 1:
                    self.written.set()
                    os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.02)

        self.written = threading.Event()
        watching = threading.Thread(target=interrupt)
        watching.start()
        self.addCleanup(watching.join)
        record = Record.begin(str(self.directory / "run"), scenario)
        self.assertRaises(
            KeyboardInterrupt,
            run.run,
            *(scenario, record, self.tell, self.said.append),
        )
        self.assertTrue(self.written.is_set())
        self.assertEqual([], [*work.iterdir()], self.said)
        # Nobody writes on.
        time.sleep(1)
        self.assertEqual([], [*work.iterdir()])

    def test_fio_leaves_no_files_after_a_failed_step(self):
        work, whole = self.on_the_disk()
        disk = replace(whole.tools.fio, size="1m", numjobs=1, seconds=1)
        scenario = replace(
            whole, tools=Tools(fio=disk), repeats=1, warm_up=0, grace_s=5
        )
        for one in (self.found["vm1"], self.found["vm2"]):
            fio = one.programs / "fio"
            fio.write_text(
                f"#!/bin/sh\ncase $* in *runtime=1*create_only*) exec "
                f"{shutil.which('fio')} $*;; *--version*) echo fio-3.33;; "
                "*) exit 7;; esac\n"
            )
            fio.chmod(0o755)
        record = Record.begin(str(self.directory / "run"), scenario)
        run.run(scenario, record, self.tell, self.said.append)
        reasons = {one["reason"] for one in record.run["failures"]}
        self.assertEqual({"exit code 7"}, reasons)
        self.assertEqual([], [*work.iterdir()], self.said)

    def test_what_a_killed_proof_left_is_removed(self):
        work = self.on_disk()
        for name in ("perfvm-host1", "perfvm-host2", "perfvm-vm1", "perfvm-notes"):
            (work / name).mkdir()
            (work / name / "test.0.0").write_text("")
        loaded.remove_files([self.targets["host"]], str(work))
        self.assertEqual(["perfvm-notes"], [path.name for path in work.iterdir()])
        # Once more there is nothing to do.
        loaded.remove_files([self.targets["host"]], str(work))

    def test_a_step_whose_connection_died_is_tried_once_more(self):
        scenario = replace(
            self.planned(),
            tools=Tools(sysbench_cpu=sysbench.CPU((1,), 1)),
            targets=tuple(t for t in self.planned().targets if t.name != "generator"),
        )
        times = self.dying("sysbench", "*--version*")
        for dies, failures in ((1, 0), (2, 1)):
            times.write_text("x" * dies)
            self.said.clear()
            path = str(self.directory / f"run{dies}")
            record = Record.begin(path, scenario)
            run.run(scenario, record, self.tell, self.said.append)
            self.assertEqual(failures, len(record.run["failures"]), self.said)
            self.assertIn("vm1: no connection; once more", " ".join(self.said))

    def dying(self, name, but):
        """Let a program on vm1 end its connection; return the file of how often."""
        times = self.directory / "times"
        program = self.found["vm1"].programs / name
        real = shutil.which(name)
        program.write_text(DYING.format(times=times, real=real, but=but))
        program.chmod(0o755)
        return times

    def test_collecting_whose_connection_died_is_tried_once_more(self):
        times = self.dying("python3", "-c*")
        times.write_text("x")
        _, guests = self.collect()
        self.assertEqual(2, len(guests))
        self.assertIn("once more", " ".join(self.said))
        times.write_text("xx")
        self.assertRaises(TargetError, self.collect)
