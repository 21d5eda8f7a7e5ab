# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
from dataclasses import replace

from nova_perfvm.measure import samples
from tests.unit.measure import published
from tests.unit.osc.base import CommandCase

STEADY = (0.99, 1.01, 1.0, 0.995, 1.005)


class CompareTest(CommandCase):
    def measured(self, measurements):
        return self.file(samples.dumps(samples.Samples(tuple(measurements))))

    def rows(self, *arguments):
        self.status = self.run_command("bench", "compare", *arguments, "-f", "json")
        return json.loads(self.stdout)

    def cpu(self, vm, **machine):
        rows = published.repeated(
            [
                published.measurement(who, "cpu.events_per_second", 4, value)
                for who, value in (("host", 100), ("vm1", vm))
            ],
            STEADY,
        )
        return self.measured(
            replace(m, machine=replace(m.machine, **machine)) if m.who == "host" else m
            for m in rows
        )

    def test_exit_statuses(self):
        for vm, target, status, verdict in (
            (90, 0.7, 0, "PASS"),
            (70, 0.7, 1, "INCONCLUSIVE"),
            (60, 0.7, 2, "FAIL"),
            (60, 0.5, 0, "PASS"),
        ):
            (row,) = self.rows(self.cpu(vm), "--target", str(target))
            self.assertEqual((status, verdict), (self.status, row["Verdict"]))

    def test_a_pass_that_is_doubtful(self):
        (row,) = self.rows(self.cpu(90, governor="powersave"))
        self.assertEqual((1, "PASS"), (self.status, row["Verdict"]))
        self.assertIn("warning: the host ran with governor powersave", self.stderr)
        ended = self.stderr.splitlines()[-1]
        self.assertIn("1 VM: 0.90 of the host's CPU (at least 0.70", ended)

    def test_a_baseline_beside_busy_vms(self):
        path = self.cpu(90)
        document = json.loads(pathlib.Path(path).read_text())
        step = {"key": "1/a", "targets": ["host"]}
        run = {"scenario": {"targets": {"host": {"kind": "host"}}}}

        def compare(**beside):
            steps = [step | beside]
            busy = self.file(json.dumps(document | {"run": run | {"steps": steps}}))
            return self.run_command("bench", "compare", busy)

        self.assertEqual(1, compare())
        self.assertIn("host: what VMs did is not known of step 1/a", self.stderr)
        for cpu_s, status, words in (
            (0.5, 0, ""),
            (
                20,
                1,
                "used 2.00 CPUs, one of them 2.00, in step 1/a: a baseline that is",
            ),
            ("x", 3, "run: could not convert string to float"),
        ):
            one = {"vms": 2, "cpu_s": cpu_s, "most_s": cpu_s, "seconds": 10}
            self.assertEqual(status, compare(beside={"host": one}))
            self.assertIn(words, self.stderr)

    def test_published_tables(self):
        rows = self.rows(self.measured(published.ly_alone()))
        self.assertEqual(2, self.status)
        self.assertIn("1.0.17 on the host, 1.0.20 in the VM", self.stderr)
        (tail,) = [row for row in rows if row["Verdict"] == "FAIL"]
        self.assertEqual(
            ("cpu.latency_max_ms", "20.273*"), (tail["Metric"], tail["Vs host"])
        )
        rows = self.rows(self.measured(published.ly_two()))
        self.assertEqual(1, self.status)
        self.assertIn("not bound to a NUMA node", self.stderr)
        (row,) = [
            row
            for row in rows
            if (row["Metric"], row["VM"], row["Threads"])
            == ("network.gbit_per_second", "vm1", 1)
        ]
        self.assertEqual(("0.343", "0.686*"), (row["Vs host"], row["Vs share"]))
        self.assertIn("at least 5", row["Reason"])

    def test_the_interval_is_shown(self):
        (row,) = self.rows(self.cpu(90))
        self.assertRegex(row["Vs host"], r"^0\.900 \(0\.89\d-0\.90\d\)\*$")

    def test_what_cannot_be_told(self):
        for text, words in (
            ("{}", "schema_version: missing"),
            ('{"schema_version": "1.0", "measurements": []}', "expected measurements"),
        ):
            path = self.file(text)
            self.assert_refused(3, words, "bench", "compare", path)
        only = [m for m in published.ly_two() if m.who == "host"]
        self.assert_refused(
            3, "no measurement of a VM", "bench", "compare", self.measured(only)
        )
        self.assert_refused(3, "cannot read", "bench", "compare", "/nowhere")
        for wrong in ("0", "x", "inf", "-1"):
            self.assert_refused(
                3,
                "expected a number above 0",
                "bench",
                "compare",
                "f",
                "--target",
                wrong,
            )


class ScalingTest(CommandCase):
    def test_published(self):
        whole = samples.Samples(scale_out=(published.rps(),))
        path = self.file(samples.dumps(whole))
        status = self.run_command("bench", "scaling", path, "-f", "json")
        self.assertEqual(2, status)
        self.assertEqual(
            {
                ("linearity", 2): ("1", "PASS"),
                ("generator", 10): ("90", "FAIL"),
                ("linearity", 10): ("0.6167", "INCONCLUSIVE"),
                ("decay", 10): ("0.5", "FAIL"),
            },
            {
                (row["What"], row["Number"]): (row["Observed"], row["Verdict"])
                for row in json.loads(self.stdout)
            },
        )

    def test_nothing_to_judge(self):
        path = self.file(samples.dumps(samples.Samples(tuple(published.ly_alone()))))
        self.assert_refused(3, "nothing to judge", "bench", "scaling", path)
