# SPDX-License-Identifier: Apache-2.0

import json

from tests.unit.measure.prove import faults, planted
from tests.unit.measure.prove.sound import FLAVOR, Case
from tests.unit.measure.prove.test_proof import write_to
from tests.unit.osc.base import CommandCase


class CertifyTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.output = self.directory / "record.json"

    def certify(self, fault=None, *arguments, case=None):
        case = case or Case()
        if fault is not None:
            planted.BY_NAME[fault].plant(case)
        paths = case.write(self.directory)
        guests = [part for path in paths.guests for part in ("--guest-collect", path)]
        return self.run_command(
            *("certify", "--policy", paths.policy, "--flavor", case.flavor),
            *("--host-collect", paths.host, *guests, "--samples", paths.samples),
            *("--output", str(self.output), *map(str, arguments)),
        )

    def test_certified(self):
        self.output.touch(0o644)
        self.assertEqual(0, self.certify(None, "--signed-off-by", "Kim"), self.stderr)
        self.assertIn(f"flavor {FLAVOR}: CERTIFIED\n", self.stdout)
        self.assertIn("kernel: 6.8.0 on the host, 6.1.0 in the VM", self.stdout)
        self.assertIn("2 VMs at once: 0.96 of the host's CPU", self.stdout)
        found = json.loads(self.output.read_text())
        self.assertEqual(
            ("certified", "Kim"), (found["verdict"], found["signed_off_by"])
        )
        self.assertIn(found["sha256"], self.stdout)
        page = self.output.with_suffix(".html")
        self.assertIn("certified", page.read_text())
        for path in (self.output, page):
            self.assertEqual(0o600, path.stat().st_mode & 0o777)

    def test_a_figure_that_is_no_endpoint_is_a_warning(self):
        case = Case()
        faults.scaled("vm2", "cpu.latency_p95_ms", 20)(case)
        self.assertEqual(0, self.certify(case=case), self.stderr)
        warnings = self.stdout.partition("WARNING\n")[2]
        self.assertIn("cpu.latency_p95_ms, 20 threads, 2 at once, of vm2", warnings)

    def test_exit_statuses(self):
        for fault, status, words in (
            ("vm1: its pages were not read", 1, "UNKNOWN\n  hypervisor.memory_local"),
            ("vm1: 4 queues on the host", 2, "FAILURE\n  hypervisor.interface_queues"),
            ("host.json ends after 50 %", 3, "host.json"),
        ):
            self.assertEqual(status, self.certify(fault), fault)
            self.assertIn(words, self.stdout + self.stderr)

    def test_a_reason_of_many_checks_is_told_once(self):
        self.assertEqual(1, self.certify("libvirt was not asked"))
        lines = [one for one in self.stdout.splitlines() if "virsh -r list" in one]
        self.assertEqual(1, len(lines), lines)
        for code in ("hypervisor.vcpu_pins", "hypervisor.class_rules"):
            self.assertEqual(1, self.stdout.count(code))
        reasons = json.loads(self.output.read_text())["reasons"]
        self.assertGreater(len(reasons), 10)

    def test_the_record_of_a_proof_alone(self):
        path = str(self.directory / "proof.json")
        write_to(path, Case())
        given = ("certify", "--proof", path, "--output", str(self.output))
        self.assertEqual(0, self.run_command(*given, "--within", "60"), self.stderr)
        self.assertIn(f"flavor {FLAVOR}: CERTIFIED\n", self.stdout)
        self.assertEqual(3, self.run_command(*given, "--samples", path))
        self.assertIn("leave --samples out", self.stderr)
        self.assertEqual(3, self.run_command("certify", *given[3:], "--flavor", "f"))
        self.assertIn("missing: --host-collect, --guest-collect", self.stderr)

    def test_nothing_is_written_for_files_that_cannot_be_used(self):
        self.certify("samples.json is missing")
        self.assertFalse(self.output.exists())

    def test_the_record_before(self):
        self.certify()
        before = self.directory / "before.json"
        self.output.rename(before)
        self.assertEqual(0, self.certify(None, "--previous", before))
        before.write_text(before.read_text().replace('"certified"', '"refused"', 1))
        self.assertEqual(3, self.certify(None, "--previous", before))
        self.assertIn("the record was changed", self.stderr)

    def test_targets_and_time(self):
        self.assertEqual(2, self.certify(None, "--target", "0.99"))
        self.assertEqual(2, self.certify(None, "--latency-target", "1.05"))
        self.assertEqual(1, self.certify(None, "--within", "5"))
        self.assertIn("certify.same_time", self.stdout)

    def test_files_that_would_be_written_over(self):
        for name in ("host.json", "samples.json", "page.html"):
            self.output = self.directory / name
            self.assertEqual(3, self.certify())
            self.assertIn("it would be written over", self.stderr)
