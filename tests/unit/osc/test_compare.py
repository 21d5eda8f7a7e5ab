# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
from dataclasses import replace

from nova_perfvm.measure import samples
from tests.unit.measure import published
from tests.unit.osc.base import CommandCase

STEADY = (0.99, 1.01, 1.0, 0.995, 1.005) * 2


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

    def test_whatever_the_ratios_it_is_no_proof(self):
        for vm, target, verdict in (
            (90, 0.7, "PASS"),
            (70, 0.7, "INCONCLUSIVE"),
            (60, 0.7, "FAIL"),
            (60, 0.5, "PASS"),
        ):
            (row,) = self.rows(self.cpu(vm), "--target", str(target))
            self.assertEqual((3, verdict), (self.status, row["Verdict"]))
            self.assertIn("\nmeasured, not a proof: 1 VM", f"\n{self.stderr}")

    def test_a_pass_that_is_doubtful(self):
        (row,) = self.rows(self.cpu(90, governor="powersave"))
        self.assertEqual((3, "PASS"), (self.status, row["Verdict"]))
        self.assertIn("warning: the host ran with governor powersave", self.stderr)
        ended = self.stderr.splitlines()[-1]
        self.assertIn("1 VM reaches 0.90 CPU of its share (at least 0.70)", ended)

    def test_a_baseline_beside_busy_vms(self):
        path = self.cpu(90)
        document = json.loads(pathlib.Path(path).read_text())
        step = {"key": "1/a", "targets": ["host"]}
        run = {"scenario": {"targets": {"host": {"kind": "host"}}}}

        def compare(**beside):
            steps = [step | beside]
            busy = self.file(json.dumps(document | {"run": run | {"steps": steps}}))
            return self.run_command("bench", "compare", busy)

        self.assertEqual(3, compare())
        self.assertIn("host: what VMs did is not known of step 1/a", self.stderr)
        for cpu_s, words in (
            (0.5, ""),
            (20, "used 2.00 CPUs, one of them 2.00, in step 1/a: a baseline that is"),
            ("x", "could not convert string to float"),
        ):
            one = {"vms": 2, "cpu_s": cpu_s, "most_s": cpu_s, "seconds": 10}
            self.assertEqual(3, compare(beside={"host": one}))
            self.assertIn(words, self.stderr)

    def test_published_tables(self):
        rows = self.rows(self.measured(published.ly_alone()))
        self.assertEqual(3, self.status)
        self.assertIn("1.0.17 on the host, 1.0.20 in the VM", self.stderr)
        (tail,) = [row for row in rows if row["Verdict"] == "FAIL"]
        self.assertEqual(
            ("cpu.latency_max_ms", "20.273*"), (tail["Metric"], tail["Vs host"])
        )
        rows = self.rows(self.measured(published.ly_two()))
        self.assertEqual(3, self.status)
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
    def rows(self, whole):
        path = self.file(samples.dumps(whole))
        status = self.run_command("bench", "compare", path, "-f", "json")
        self.assertEqual(3, status, self.stderr)
        return {
            (row["VM"], row["At once"]): (row["Scaling"], row["Verdict"])
            for row in json.loads(self.stdout)
            if row["Scaling"]
        }

    def test_servers_as_published(self):
        self.assertEqual(
            {
                ("linearity", 2): ("1", "PASS"),
                ("generator", 10): ("90", "FAIL"),
                ("linearity", 10): ("0.6167", "INCONCLUSIVE"),
                ("decay", 10): ("0.5", "FAIL"),
            },
            self.rows(samples.Samples(scale_out=(published.rps(),))),
        )

    def test_vms_at_once(self):
        """ETRI: the sum of all by what one does alone, without a host, too."""
        found = self.rows(
            samples.Samples(
                tuple(
                    published.measurement(
                        f"vm{n}", "gmake.per_second", 4, 60 / vms, at_once=vms
                    )
                    for vms in (1, 2, 4)
                    for n in range(vms)
                )
            )
        )
        self.assertEqual("1", found["of alone", 4][0])

    def test_the_page(self):
        whole = samples.Samples(tuple(published.ly_two()), (published.rps(),))
        page = self.directory / "page.html"
        path = self.file(samples.dumps(whole))
        status = self.run_command("bench", "compare", path, "--output", str(page))
        self.assertEqual(3, status, self.stderr)
        self.assertIn("measured, not a proof", page.read_text())
        self.assertIn("api, decay", page.read_text())
