# SPDX-License-Identifier: Apache-2.0
"""``guest check`` by the console script, in every format."""

import csv
import dataclasses
import io
import json
import pathlib
from xml.etree import ElementTree as ET

import fixtures
import testtools
import yaml

from nova_perfvm.measure import cure
from nova_perfvm.measure.checks import guest as package
from nova_perfvm.measure.checks.check import checks_of
from tests import console
from tests.unit.measure import guests, reports, this_machine

CHECKS = checks_of(package)
CLASS = ("--class", "high-performance")


class CheckGuestTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY"))
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.clean = self.save("clean", guests.guest())
        path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        slow = guests.having(guests.guest(), files={path: "hpet\n"})
        self.slow = self.save("slow", slow)
        self.ly = self.save("ly", guests.ly())

    def save(self, name, collected):
        document = dataclasses.asdict(collected) | {
            "schema_version": "1.0",
            "commands": {
                line: output._asdict() for line, output in collected.commands.items()
            },
        }
        path = self.directory / name
        path.write_text(json.dumps(document))
        return path

    def check(self, *arguments):
        status, stdout, stderr = console.run("guest", "check", *arguments)
        self.assertNotIn("Traceback", stderr)
        return status, stdout, stderr

    def test_exit_codes(self):
        broken = self.directory / "broken"
        broken.write_text('{"kind": "guest"')
        other = self.directory / "other"
        other.write_text('{"kind": "guest"}')
        host = self.save("host", dataclasses.replace(guests.guest(), kind="host"))
        for expected, arguments in (
            (0, [self.clean, *CLASS]),
            (0, [self.clean, *CLASS, "--strict"]),
            (0, [self.clean]),
            (1, [self.clean, "--strict"]),
            (1, [self.slow, *CLASS]),
            (2, [self.ly]),
            (3, [self.directory / "absent"]),
            (3, [broken]),
            (3, [host]),
            (3, [other]),
            (3, [self.clean, "--class", "huge"]),
            (3, [self.clean, "--fix-script"]),
        ):
            with self.subTest(arguments=arguments):
                status, _, stderr = self.check(*arguments)
                self.assertEqual(expected, status, stderr)

    def test_table_and_summary(self):
        _, stdout, stderr = self.check(self.ly, "--max-width", "0")
        first = stdout.splitlines()[3]
        self.assertIn("guest.nic_queues", first)
        self.assertIn("| failure ", first)
        self.assertEqual(
            f"{len(CHECKS)} checks of guest rgw1: "
            "3 failure, 0 warning, 12 unknown, 0 ok\n",
            stderr,
        )

    def test_formats_of_the_client(self):
        (first, *_) = json.loads(self.check(self.slow, *CLASS, "-f", "json")[1])
        self.assertEqual(
            {
                "Code": "guest.clocksource",
                "Level": "warning",
                "Subject": "clock source",
                "Expected": "kvm-clock or tsc",
                "Observed": "hpet",
            },
            {name: first[name] for name in list(first)[:5]},
        )
        rows = yaml.safe_load(self.check(self.ly, "-f", "yaml")[1])
        self.assertEqual(["failure"] * 3, [row["Level"] for row in rows[:3]])
        rows = csv.reader(io.StringIO(self.check(self.ly, "-f", "csv")[1]))
        self.assertEqual(16, len(list(rows)))
        stdout = self.check(self.slow, *CLASS, "-f", "value", "-c", "Level")[1]
        self.assertEqual("warning", stdout.split()[0])
        self.assertEqual({"ok"}, set(stdout.split()[1:]))

    def test_junit(self):
        suite = ET.fromstring(self.check(self.ly, "-f", "junit")[1])
        cases = list(suite.iter("testcase"))
        self.assertEqual(
            [check.title for check in CHECKS], [c.get("name") for c in cases]
        )
        failed = [case for case in cases if case.find("failure") is not None]
        self.assertEqual(
            (str(len(CHECKS)), "2", str(len(CHECKS) - 2), 2),
            (*(suite.get(n) for n in ("tests", "failures", "skipped")), len(failed)),
        )
        (_, spread) = failed
        failure = spread.find("failure")
        self.assertIn("guest.nic_spread virtio0 input: 1.22", failure.get("message"))
        self.assertIn("remedy: resize the server", failure.text)
        suite = ET.fromstring(self.check(self.clean, *CLASS, "-f", "junit")[1])
        self.assertEqual("0", suite.get("failures"))
        for case in suite.iter("testcase"):
            self.assertIn("observed: ", case.find("system-out").text)

    def test_prometheus(self):
        collected = dataclasses.replace(guests.ly(), hostname='a"b')
        path = self.save("odd", collected)
        lines = self.check(path, "-f", "prometheus")[1].splitlines()
        metric = "perfvm_check_findings"
        machine = r'kind="guest",hostname="a\"b"'
        for line in (
            f'{metric}{{{machine},code="guest.nic_spread",level="failure"}} 2',
            f'{metric}{{{machine},code="guest.xps",level="failure"}} 0',
            f"perfvm_check_timestamp_seconds{{{machine}}} 1795341600",
        ):
            self.assertIn(line, lines)
        samples = [line for line in lines if not line.startswith("#")]
        self.assertEqual(4 * len(CHECKS) + 1, len(samples))

    def test_output_replaces_a_file(self):
        path = self.directory / "metrics"
        status, stdout, _ = self.check(
            self.ly, "-f", "prometheus", "--output", path
        )  # fmt: skip
        self.assertEqual((2, ""), (status, stdout))
        self.assertIn("perfvm_check_findings", path.read_text())

    def test_a_policy_is_for_a_class(self):
        policy = self.directory / "perfvm.yaml"
        policy.write_text("schema_version: '1.0'\nclasses: 3\n")
        status, _, stderr = self.check(self.clean, *CLASS, "--policy", policy)
        self.assertEqual(3, status)
        self.assertIn("classes", stderr)
        for path in (policy, self.clean, self.directory / "absent"):
            status, stdout, stderr = self.check(self.clean, "--policy", path)
            self.assertEqual((3, ""), (status, stdout))
            self.assertIn(str(path), stderr)
        policy.write_text("schema_version: '1.0'\n")
        status, _, stderr = self.check(self.clean, "--policy", policy)
        self.assertEqual(0, status)
        self.assertIn("without --class nothing of the policy is judged", stderr)

    def test_a_sosreport(self):
        path = self.directory / "sosreport-compute1.tar.xz"
        path.write_bytes(reports.packed(reports.sosreport(), "w:xz"))
        self.assertIn("of guest compute1: ", self.check(path, "-f", "json")[2])
        status, _, stderr = self.check(path, "--fix-script")
        self.assertEqual(3, status)
        self.assertIn("not allowed with argument", stderr)

    def test_this_machine(self):
        status, stdout, stderr = self.check("--interval", "0.2", "-f", "json")
        self.assertIn(status, {0, 1, 2}, stderr)
        found = {}
        for row in json.loads(stdout):
            found.setdefault(row["Code"], {})[row["Subject"]] = row
        self.assertEqual({check.code for check in CHECKS}, set(found))

        queues, vectors = found["guest.nic_queues"], found["guest.nic_vectors"]
        nics, cpus = this_machine.nics(), this_machine.cpus()
        self.assertEqual({nic.name for nic in nics} or {""}, set(queues))
        if not nics:
            self.assertEqual(
                {"unknown"}, {rows[""]["Level"] for rows in (queues, vectors)}
            )
        for nic in nics:
            with self.subTest(nic=nic, cpus=cpus):
                # A device with one vector for all queues does not say how many.
                if nic.present:
                    self.assert_queues(nic, cpus, queues[nic.name])
                    self.assert_vectors(nic, cpus, vectors)
                else:
                    self.assertNotIn("multiqueue", queues[nic.name]["Remedy"])

    def assert_queues(self, nic, cpus, row):
        """Look whether what is said of a NIC of virtio is what the kernel shows."""
        words = f"{nic.present} present, {nic.enabled} enabled"
        self.assertEqual(words, row["Observed"])
        self.assertIn(f"for {cpus} vCPUs", row["Expected"])
        if nic.present < cpus:
            status, remedy = "failure", "hw:vif_multiqueue_enabled=true"
        elif nic.enabled < cpus:
            status, remedy = "failure", f"ethtool -L {nic.name} combined {cpus}"
        else:
            status, remedy = "ok", ""
        self.assertEqual(status, row["Level"])
        self.assertIn(remedy, row["Remedy"])

    def assert_vectors(self, nic, cpus, rows):
        if cpus == 1 or nic.enabled == 1:
            row = rows[nic.name]
            words = "the guest has one CPU" if cpus == 1 else "it has one queue"
            self.assertEqual("unknown", row["Level"])
            self.assertIn(words, row["Observed"])
            return
        for direction in ("input", "output"):
            most = this_machine.busiest(nic, direction)
            if most is not None and nic.enabled == nic.present:
                holds = most <= -(-nic.present // cpus)
                row = rows[f"{nic.name} {direction}"]
                self.assertEqual("ok" if holds else "failure", row["Level"])
                self.assertIn(f"{most} on the busiest", row["Observed"])

    def test_fix_script(self):
        self.assertEqual((0, cure.user_data(), ""), self.check("--fix-script"))
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "user-data")
        found = self.check("--fix-script", "--output", str(path))
        self.assertEqual((0, "", ""), found)
        self.assertEqual(cure.user_data(), path.read_text())
