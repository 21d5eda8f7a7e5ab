# SPDX-License-Identifier: Apache-2.0
"""A proof of a VM whose kernel runs: reached through its host, measured, judged.

A namespace of this machine is its host.  No ratio means anything.
"""

import pathlib
from dataclasses import replace

import fixtures
import yaml

from nova_perfvm.cloud.proof_servers import ProofServer
from nova_perfvm.findings import Level
from nova_perfvm.generate.flavors import generate_flavors
from nova_perfvm.measure import samples
from nova_perfvm.measure.bench import run
from nova_perfvm.measure.bench.record import Record
from nova_perfvm.measure.prove import loaded, plan, proof
from nova_perfvm.measure.prove.session import ProofOptions
from nova_perfvm.policy import loader
from tests.guest import image, machine, reached
from tests.measure import machine as machines
from tests.unit.measure.prove import records

HOST, VCPUS = "host-x", 2 * reached.VCPUS


class ProveTest(machine.GuestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if why := reached.missing():
            raise cls.skipException(why)
        cls.host = machines.Machine(HOST)
        cls.host.setUp()
        cls.addClassCleanup(cls.host.cleanUp)
        cls.guest = cls.started(reached.Reached, *reached.MORE, host=cls.host)

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.said = []
        document = loader.load().as_document()
        vm_class = document["classes"]["high-performance"]
        size = {"vcpus": VCPUS, "memory_gb": reached.MEMORY_MB // 1024, "root_gb": 0}
        vm_class |= {"vcpus": VCPUS, "flavors": vm_class["flavors"] | {"sizes": [size]}}
        self.policy = loader.parse(yaml.safe_dump(document, sort_keys=False))
        self.flavor = generate_flavors(self.policy)[0]
        self.guest.describe(self.flavor.name)

    def tell(self, *what):
        self.said.append(what)

    def machines(self):
        """Return the machines as the command line names them."""
        ssh = self.directory / "ssh_config"
        known = {image.ADDRESS: self.guest, HOST: self.host}
        ssh.write_text("".join(machines.client(*one) for one in known.items()))
        given = ProofOptions(
            ssh_option=["-F", str(ssh)],
            generator=f"root@{HOST}",
            generator_address=machine.GATEWAY.partition("/")[0],
            jump=HOST,
            output=str(self.directory / "proof.json"),
        )
        server = ProofServer("vm1", HOST, self.flavor.name, image.ADDRESS)
        found = given.machines(HOST, 1)
        vms = tuple(given.targets([server]))
        return replace(found, vms=vms, nodes=loaded.nodes(found.host))

    def test_a_guest_of_half_its_vcpus(self):
        found = self.machines()
        vm_class = self.policy.get_class(self.flavor.class_name)
        whole = plan.scenario_of(self.flavor, vm_class, found, quick=True)
        tools = plan._tools(self.flavor, found, 1, None)
        # This machine's last-level cache may be larger than the guest's memory.
        scenario = replace(whole, tools=tools, repeats=1, working_set_mb=64)
        loaded.await_ready(scenario.targets, scenario, machine.PATIENCE_S, self.tell)
        warnings = []
        path = str(self.directory / "proof.json")
        record = Record.begin(f"{path}.run", scenario)
        run.run(scenario, record, self.tell, warnings.append)
        self.assertEqual([], record.run["failures"])
        warnings.clear()
        load = plan.load(self.flavor, found, loaded.LOAD_S)
        seen = loaded.collect(found, load, self.flavor.memory_mb, warnings.append)
        self.assertEqual([], warnings)
        made = proof.make(
            policy=loader.dump(self.policy),
            flavor=self.flavor.name,
            seen=seen,
            measured=samples.load(f"{path}.run"),
        )
        judged = proof.judged(made)
        proof.write(path, made, judged)
        self.assert_of_the_guest(records.read(path))
        self.assert_reasons(judged)
        self.assertIs(Level.FAILURE, judged.level)
        line = proof.line(judged)
        self.assertRegex(line, rf"^measured, not a proof: .* on {HOST}: ")
        self.assert_nothing_runs()

    def assert_of_the_guest(self, record):
        """Look that the guest's kernel tells of itself whenever it is asked."""
        (session,) = record.measured.run["sessions"]
        before = session["targets"]["vm1"]["collected"]
        of_host = record.host.files
        (guest,) = record.guests
        for hostname, files in (
            (guest.hostname, guest.files),
            (before["hostname"], before["files"]),
        ):
            self.assertEqual(image.HOSTNAME, hostname)
            self.assertIn("console=ttyS0", files["/proc/cmdline"])
            self.assertEqual("0-1\n", files["/sys/devices/system/cpu/online"])
            for path in ("/proc/version", "/proc/sys/kernel/random/boot_id"):
                self.assertEqual(guest.files[path], files[path])
                self.assertNotEqual(of_host[path], files[path])
        # Its memory was not in use before.
        self.assertGreater(available_mb(before["files"]), 1000)
        self.assertLess(available_mb(guest.files), 700)

    def assert_reasons(self, judged):
        for level, code, words in (
            (Level.FAILURE, "guest.shape", f"2 of {VCPUS} vCPUs"),
            (Level.FAILURE, "proof.vcpus", "2 for libvirt, 2 in the guest"),
            (Level.FAILURE, "hypervisor.virtual_cpu", "tcg"),
            # The policy allows two.
            (Level.UNKNOWN, "proof.every_vm", "found 1 "),
        ):
            found = [
                one.observed
                for one in judged.reasons
                if (one.level, one.code) == (level, code)
            ]
            self.assertIn(words, " ".join(found), judged.reasons)
        codes = {one.code for one in judged.reasons}
        fulfilled = {
            *("proof.guest_on_host", "proof.flavor", "proof.memory"),
            *("proof.same_time", "proof.same_state", "proof.measured_here"),
            *("proof.counters", "hypervisor.memory_whole"),
        }
        self.assertEqual(set(), codes & fulfilled, judged.reasons)
        # What NICs lost since the first measurement is judged at all.
        lost = [
            one
            for section in judged.sections
            for one in section.report.findings
            if one.code == "proof.counters"
        ]
        self.assertEqual({"host", image.HOSTNAME}, {one.subject for one in lost})
        self.assertEqual({Level.OK}, {one.level for one in lost}, lost)

    def assert_nothing_runs(self):
        """Look that what was started in the guest has ended; nobody reaps it there."""
        lines = self.guest.shell("cat /proc/[0-9]*/cmdline").split("\0")
        left = {*reached.TOOLS, "timeout", "sleep"} & set(lines)
        self.assertEqual(set(), left)


def available_mb(files):
    found = dict(line.split(":") for line in files["/proc/meminfo"].splitlines())
    return int(found["MemAvailable"].split()[0]) // 1024
