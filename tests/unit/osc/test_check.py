# SPDX-License-Identifier: Apache-2.0
"""``guest check`` by the console script, in every format."""

import dataclasses
import json
import re

from prometheus_client import parser as prometheus

from nova_perfvm.measure.checks import guest as package
from nova_perfvm.measure.checks import queue_script
from nova_perfvm.measure.checks.check import checks_of
from tests.unit.measure import guests, hosts, this_machine
from tests.unit.osc.base import CommandCase

CHECKS = checks_of(package)
CLASS = ("--class", "high-performance")

QUEUE_NAMES = [
    f"virtio0-{way}.{queue}" for queue in (0, 1) for way in ("input", "output")
]


class CheckGuestTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.clean = self.collected("clean", guests.guest())
        path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
        slow = guests.having(guests.guest(), files={path: "hpet\n"})
        self.slow = self.collected("slow", slow)
        self.ly = self.collected("ly", guests.ly())

    def collected(self, name, guest):
        return self.write(name, hosts.as_json(guest))

    def check(self, *arguments):
        status = self.run_command("guest", "check", *arguments)
        return status, self.stdout, self.stderr

    def test_exit_codes(self):
        broken = self.write("broken", '{"kind": "guest"')
        other = self.write("other", '{"kind": "guest"}')
        host = self.collected("host", dataclasses.replace(guests.guest(), kind="host"))
        policy = self.write("perfvm.yaml", "schema_version: '1.0'\nclasses: 3\n")
        for expected, arguments in (
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
            (3, [self.clean, *CLASS, "--policy", policy]),
            (3, [self.clean, "--fix-script"]),
        ):
            status, _, stderr = self.check(*arguments)
            self.assertEqual(expected, status, f"{arguments} {stderr}")

    def test_a_copy_of_proc_interrupts(self):
        text = guests.ly().files["/proc/interrupts"]
        status, stdout, stderr = self.check(self.write("interrupts.txt", text))
        self.assertEqual(2, status, stderr)
        self.assertIn("1.22 effective CPUs", stdout)
        self.assertIn("interrupts.txt: 3 failure, 0 warning, 13 unknown, 0 ok", stderr)

    def table(self, cpus, *counts, names=QUEUE_NAMES):
        """Return /proc/interrupts with {CPU: count} of each vector."""
        return guests.interrupts(zip(names, counts, strict=True), cpus)

    def test_few_interrupts_are_no_evidence(self):
        # On CPU 0 as drivers start; the traffic of each pair has a CPU of its own.
        for few in (1, 999):
            busy = ({0: 6547137}, {0: few}, {0: few, 1: 5938591}, {0: few})
            path = self.write("copy", self.table(2, *busy))
            status, stdout, stderr = self.check(path, "-f", "json")
            self.assertEqual(0, status, stderr)
            found = {
                row["Subject"]: row["Level"]
                for row in json.loads(stdout)
                if row["Code"] == "guest.nic_vectors"
            }
            self.assertEqual(
                {"virtio0 input": "ok", "virtio0 output": "unknown"}, found
            )

    def test_enough_interrupts_are_evidence(self):
        busy = ({0: 6547137}, {0: 1000}, {1: 5938591}, {0: 1000})
        status, stdout, _ = self.check(self.write("copy", self.table(2, *busy)))
        self.assertEqual(2, status)
        self.assertIn("virtio0 output: 2 vectors on 1 CPUs, 2 on the busiest", stdout)

    def test_a_table_after_a_prompt(self):
        table = self.table(2, {0: 5000}, {0: 5000}, {1: 5000}, {1: 5000})
        for before in ("# cat /proc/interrupts\n", "\nvm1:~$ cat /proc/interrupts\n"):
            path = self.write("copy", f"{before}{table}vm1:~$ \n")
            status, stdout, stderr = self.check(path, "-f", "json")
            self.assertEqual(0, status, stderr)
            levels = [
                row["Level"]
                for row in json.loads(stdout)
                if row["Code"] == "guest.nic_vectors"
            ]
            self.assertEqual(["ok", "ok"], levels)

    def test_copies_that_are_no_table(self):
        table = self.table(2, {0: 5000}, {0: 5000}, {1: 5000}, {1: 5000})
        _, _, rows = table.partition("\n")
        wrapped = f"CPU0\nCPU1\n{rows}"
        for text, words in (
            (rows, "in which no line names the CPUs: copy one table, with its first"),
            (f"{table}\n$ cat /proc/interrupts\n{table}", "in which 2 lines name CPUs"),
            (wrapped, "in which 2 lines name CPUs"),
            ("vm1 is slow\n", "expected a collected file of a guest"),
        ):
            status, _, stderr = self.check(self.write("copy", text))
            self.assertEqual(3, status)
            self.assertIn(words, stderr)
            self.assertEqual(1, stderr.count("\n"), stderr)

    def test_tables_that_tell_no_nic(self):
        for name, words in (
            (
                "virtio0-virtqueues",
                "it names no queue (virtio0-input.0) and leaves the device",
            ),
            (
                "timer",
                "it names no queue (virtio0-input.0): run nova-perfvm guest collect",
            ),
        ):
            text = self.table(2, {}, {0: 5000}, names=("virtio0-config", name))
            _, stdout, _ = self.check(self.write("copy", text))
            self.assertIn(words, " ".join(stdout.split()))

    def test_prometheus(self):
        collected = dataclasses.replace(guests.ly(), hostname='a"b')
        written = self.directory / "metrics"
        options = ("-f", "prometheus", "--output", written)
        status, stdout, _ = self.check(self.collected("odd", collected), *options)
        self.assertEqual((2, ""), (status, stdout))
        lines = written.read_text().splitlines()
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

    def test_prometheus_reads_whatever_a_machine_is_called(self):
        """On a terminal and in a file: no escape but those that Prometheus knows."""
        for name, said in (
            ("a\x1b[2J", r"a\u001b[2J"),
            ("a\r\x85\u2028b", r"a\r\u0085\u2028b"),
            ("a\nb", "a\nb"),
            (r"a\n", r"a\n"),
            ("\u202ea", r"\u202ea"),
        ):
            collected = dataclasses.replace(guests.ly(), hostname=name)
            path = self.collected("odd", collected)
            written = self.directory / "metrics"
            self.check(path, "-f", "prometheus", "--output", written)
            for text in (self.check(path, "-f", "prometheus")[1], written.read_text()):
                families = prometheus.text_string_to_metric_families(text)
                labels = [s.labels["hostname"] for f in families for s in f.samples]
                self.assertEqual({said}, {*labels}, text)
                # Prometheus' own parser, written in Go, refuses any other.
                self.assertEqual([], re.findall(r'(?<!\\)(?:\\\\)*\\[^\\n"]', text))

    def test_this_machine(self):
        status, stdout, stderr = self.check("--interval", "0.2", "-f", "json")
        self.assertIn(status, {0, 1, 2}, stderr)
        found = {}
        for row in json.loads(stdout):
            found.setdefault(row["Code"], {})[row["Subject"]] = row
        self.assertEqual({check.code for check in CHECKS}, set(found))
        nics = {nic.name: nic for nic in this_machine.nics()}
        queues = found["guest.nic_queues"]
        self.assertEqual(set(nics) or {""}, set(queues))
        for name, nic in nics.items():
            # A device with one vector for all queues does not say how many.
            if nic.present:
                words = f"{nic.present} present, {nic.enabled} enabled"
                self.assertEqual(words, queues[name]["Observed"])

    def test_fix_script(self):
        self.assertEqual((0, queue_script.user_data(), ""), self.check("--fix-script"))
        path = self.directory / "user-data"
        self.assertEqual((0, "", ""), self.check("--fix-script", "--output", path))
        self.assertEqual(queue_script.user_data(), path.read_text())
