# SPDX-License-Identifier: Apache-2.0

import json

from nova_perfvm.documents.keys import keys_of
from nova_perfvm.facts import snapshot
from nova_perfvm.measure import samples
from nova_perfvm.measure.samples import Samples
from nova_perfvm.osc.plan import PlanServers
from nova_perfvm.sizing.services import Service
from tests.unit.facts.snapshot.clouds import Cloud, blind
from tests.unit.measure import published
from tests.unit.osc.base import CommandCase
from tests.unit.sizing import test_disk, test_observed

TABLE = """\
name,servers,cpus,cpu_percent,memory_gb,used_memory_gb,latency_sensitive,peak
redis,12,40,46,128,110,,p95
web,30,40,10,64,30,,p95
"""
VOIP = "voip,3,20,20,64,,yes,\n"


def small_cloud():
    cloud = Cloud()
    for name in ("h1", "h2", "h3"):
        cloud.add_host(name)
    cloud.add_hp("a", "h1")
    cloud.add_hp("b", "h2")
    return cloud


class PlanServersTest(CommandCase):
    def run_plan(self, *arguments, status=0):
        """Run the command; return the rows of its JSON."""
        found = self.run_command("plan", "servers", *arguments, "-f", "json")
        self.assertEqual(status, found, self.stderr)
        return json.loads(self.stdout)

    def test_hosts(self):
        rows = self.run_plan(self.file(TABLE), "--memory-gb", "500")
        by_arm = {row["Arm"]: row for row in rows}
        self.assertEqual(
            {"today": 42, "one VM per server": 42, "slots": 27, "units": 27},
            {name: row["Total"] for name, row in by_arm.items() if name != "cells"},
        )
        self.assertEqual(36, by_arm["slots"]["Fewer %"])
        self.assertEqual(27, by_arm["slots"]["Total at 0.9"])
        for line in (
            (
                "redis: peak (p95) 46 % of 40 CPUs = 18.4; at ratio 0.904 needs 20.4: "
                "2 hp.20c.64g per server; limit: CPU"
            ),
            "ratios: LY; measured: no",
            "from 42 servers to 27 hosts: 36 % fewer; lower bound 27",
        ):
            self.assertIn(f"{line}\n", self.stderr)

    def test_the_help_has_all_columns(self):
        for key in keys_of(Service):
            self.assertRegex(PlanServers.__doc__, rf"\b{key.name}\b")

    def test_services(self):
        rows = self.run_plan(
            *(self.file(TABLE + VOIP), "--memory-gb", "500", "--by", "services"),
            status=1,
        )
        self.assertEqual(
            [("redis", 24, "no", ""), ("web", 30, "no", ""), ("voip", 0, "no")],
            [
                (row["Service"], row["VMs"], row["Measured"])
                + ((row["Reason"],) if row["VMs"] else ())
                for row in rows
            ],
        )
        self.assertIn("latency-sensitive, and LY's VM was late", rows[2]["Reason"])
        only = self.file(TABLE.splitlines()[0] + "\n" + VOIP)
        self.run_plan(only, "--memory-gb", "500", status=2)

    def test_ratios(self):
        record = self.write(
            "run.json", samples.dumps(Samples(tuple(published.ly_two())))
        )
        table = self.file(TABLE)
        for arguments, words in (
            (("--record", record), f"ratios: {record}; measured: yes\n"),
            (("--ratios", "vmware"), "at ratio 0.923 needs"),
            (("--ratios", "ly", "--ratios", "rps"), "ratios: LY, RPS; measured: no"),
        ):
            self.run_plan(table, "--memory-gb", "500", *arguments)
            self.assertIn(words, self.stderr)

    def test_disk(self):
        """KISTI's three counts, each with its latency."""
        table = self.file("name,servers,cpus,memory_gb,read_iops\nvm,6,4,8,50\n")
        for name, rule, extrapolated, latency in (
            ("NAS", 2, 7, 80.84),
            ("SAS", 4, 7, 86.1),
            ("SSD", 59, 176, 3.33),
        ):
            five = list(zip(*test_disk.FIVE[name], strict=True))
            alone = test_disk.ALONE[name]
            paths = [
                self.write(f"{name}{number}.json", test_disk.measured(*figures))
                for number, figures in enumerate(
                    [(alone.read_iops, alone.write_iops, alone.read_ms, alone.write_ms)]
                    + [(*one, one[2]) for one in five]
                )
            ]
            options = ["--alone", paths[0]]
            for path in paths[1:]:
                options += ["--contended", path]
            rows = self.run_plan(
                *(table, "--memory-gb", "128", "--host-shape", "2x6", *options),
                *("--by", "disk"),
            )
            self.assertEqual(
                {"rule": rule, "demonstrated": 5, "extrapolated": extrapolated},
                {row["Count"]: row["VMs"] for row in rows},
            )
            self.assertEqual(latency, rows[1]["Latency ms"])
            self.assertIn("8.0 I/Os were outstanding", self.stderr)

    def test_sadf(self):
        path = self.file(test_observed.SAMPLE)
        (row,) = self.run_plan(path, "--memory-gb", "500", "--by", "services")
        self.assertEqual(("redis", 1, "max"), (row["Service"], row["VMs"], row["Peak"]))

    def test_a_week_of_sadf(self):
        days = [
            self.write(f"day{n}.json", test_observed.day(f"2026-11-0{n}", 90.0))
            for n in range(1, 8)
        ]
        (row,) = self.run_plan(*days, "--memory-gb", "500", "--by", "services")
        self.assertEqual((1, 0.2), (row["Servers"], row["Used CPUs"]))

    def test_cloud(self):
        saved = self.save(small_cloud())
        rows = self.run_plan("--snapshot", saved)
        self.assertEqual(
            [("h3", 0, ""), ("h1", 1, "h2")],
            [(row["Host"], row["Servers"], row["To"]) for row in rows],
        )
        slots = "class high-performance: 4 of 6 slots are free\n"
        self.assertIn(slots, self.stderr)
        said = "of your 3 hosts 2 can be emptied in this order: h3, h1\n"
        self.assertIn(said, self.stderr)
        self.run_plan(self.file(TABLE), "--snapshot", saved, "--memory-gb", "500")
        self.assertIn(said, self.stderr)
        needed = (
            "hosts needed: 2 that can be emptied, 25 new ones; free room on the other "
            "hosts is not counted"
        )
        self.assertIn(needed, self.stderr)

    def test_hosts_that_show_no_nodes(self):
        blinded = snapshot.dumps(blind(small_cloud().snapshot()))
        saved = self.write("cloud.json", blinded)
        arguments = (self.file(TABLE), "--snapshot", saved, "--memory-gb", "500")
        words = "no host shows its NUMA nodes: name --host-shape, --memory-gb"
        self.assert_refused(3, words, "plan", "servers", *arguments)
        self.run_plan(*arguments, "--host-shape", "2x20")
        self.assertIn("each host: 2x20 CPUs, 500 GiB\n", self.stderr)

    def test_a_service_of_two_tables(self):
        other = self.write("other.csv", TABLE)
        sample = self.write("sadf.json", test_observed.SAMPLE)
        table = self.file(TABLE)
        for files, words in (
            ((table, other), f"service redis is in {table} and in {other}, and would"),
            ((table, sample), f"service redis is in {table} and in sadf, and would"),
        ):
            self.assert_refused(
                3, words, "plan", "servers", *files, "--memory-gb", "500"
            )

    def test_mistakes(self):
        table = self.file(TABLE)
        fio = self.write("fio.json", test_disk.fio())
        enough = (table, "--memory-gb", "500")
        for words, *arguments in (
            ("name a table of services, --prometheus or --cloud",),
            ("there is no cloud here", "--cloud"),
            ("name the memory of a host with --memory-gb", table),
            ("--by emptied needs --cloud", *enough, "--by", "emptied"),
            ("--by disk needs --alone", *enough, "--by", "disk"),
            ("go with --alone", *enough, "--contended", fio),
            (
                "needs --contended",
                *enough,
                "--alone",
                fio,
                "--disk-count",
                "extrapolated",
            ),
            ("ETRI has no ratio of CPUs", *enough, "--ratios", "etri"),
            ("expected a percentage such as 20%", *enough, "--headroom", "0.2"),
            ("expected a period such as 7d", *enough, "--range", "week"),
            ("expected", *enough, "--host-shape", "two"),
            ("cannot read /nowhere", "/nowhere"),
            ("gives no answer of Prometheus", "--prometheus", "http://127.0.0.1:9"),
            ("line 2: a.cpus: missing", self.file("name,servers\na,1\n")),
        ):
            self.assert_refused(3, words, "plan", "servers", *arguments)
