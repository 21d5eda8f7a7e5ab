# SPDX-License-Identifier: Apache-2.0

import asyncio
import os
import pathlib
import shutil
import subprocess
import time

import fixtures
import testtools

from nova_perfvm.measure.bench import busy_vms
from nova_perfvm.measure.bench.busy_vms import Own, Seen
from nova_perfvm.measure.bench.connection import Used
from nova_perfvm.measure.bench.scenario import Target

HOST = Target("host", "host")
PATIENCE_S = 60
NOBODY = {"cpus": 40, "threads": 40, "others_s": 0.0, "loudest": ""}


class BesideTest(testtools.TestCase):
    """Processes of this machine that are called like QEMU."""

    def started(self, *arguments):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        program = shutil.copy(shutil.which("sh"), directory / "qemu-x) R 1")
        process = subprocess.Popen(
            [program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.kill)
        return process.pid

    def look(self, *targets):
        return asyncio.run(busy_vms.look(targets))

    def test_what_they_use(self):
        busy = self.started("-c", "while :; do :; done")
        idle = self.started("-c", "read -r line")
        before = self.look(HOST, Target("vm1", "guest"))
        self.assertEqual({"host"}, set(before))
        self.assertLessEqual({busy, idle}, set(before["host"].cpu_s))
        deadline = time.monotonic() + PATIENCE_S
        used = 0.0
        while used < 0.2 and time.monotonic() < deadline:
            time.sleep(0.1)
            after = self.look(HOST)
            used = after["host"].cpu_s[busy] - before["host"].cpu_s[busy]
        self.assertGreaterEqual(used, 0.2)
        self.assertLess(after["host"].cpu_s[idle], 0.2)

        # Others of this machine may end meanwhile.
        def own(look):
            found = {pid: look["host"].cpu_s[pid] for pid in (busy, idle)}
            return {"host": look["host"]._replace(cpu_s=found)}

        none = {"host": Own([], 0)}
        found = busy_vms.between(own(before), own(after), none)["host"]
        self.assertEqual(2, found["vms"])
        self.assertGreaterEqual(found["cpu_s"], 0.2)
        self.assertGreaterEqual(found["most_s"], 0.2)
        self.assertGreater(found["seconds"], 0)
        # On the CPUs of this machine, where the benchmark has none.
        self.assertGreaterEqual(found["others_s"], 0.2)
        self.assertEqual(os.cpu_count(), found["cpus"])
        self.assertTrue(found["loudest"])

    def test_what_others_did_is_what_the_benchmark_did_not(self):
        before = Seen(0.0, {}, {0: 5.0, 1: 7.0, 2: 1.0}, {"ceph-osd": 90.0, "sh": 1.0})
        after = Seen(10.0, {}, {0: 14.5, 1: 16.0, 2: 9.0}, {"ceph-osd": 91.5, "apt": 1})
        for own, others_s, cpus in (
            ([Used("0", 9.0), Used("1", 8.5)], 1.0, 2),
            ([Used("0-1", 17.0), Used("0-1", 0.9)], 0.6, 2),
            ([Used("0-1", 30.0)], 0.0, 2),
            ([], 26.5, 3),
        ):
            (found,) = busy_vms.between(
                {"host": before}, {"host": after}, {"host": Own(own, 2)}
            ).values()
            self.assertEqual((others_s, cpus), (found["others_s"], found["cpus"]))
            self.assertEqual("ceph-osd", found["loudest"])
        unknown = busy_vms.between({"host": before}, {"host": after}, {"host": None})
        self.assertEqual({"host": None}, unknown)

    def test_what_runs_beside_idle_cpus_takes_nothing(self):
        for threads, share in ((40, 0.05), (39, 1 / 39), (38, 0.0), (1, 0.0)):
            beside = {"vms": 0, "cpu_s": 0, "most_s": 0, "seconds": 10} | NOBODY
            beside |= {"others_s": 20.0, "threads": threads}
            step = {"key": "1/a", "targets": ["host"], "beside": {"host": beside}}
            self.assertAlmostEqual(share, self.of_host(step).loudest.share)

    def test_others_are_judged_by_the_mean_of_a_kind_of_run(self):
        one = {"vms": 0, "cpu_s": 0, "most_s": 0, "seconds": 10, "cpus": 20}
        one["threads"] = 20
        steps = [
            {
                "key": f"{number}/hosts/{kind}",
                "targets": ["host"],
                "beside": {"host": one | {"others_s": others_s, "loudest": "apt"}},
            }
            for kind, of in (("cpu", (20, 0, 0, 0)), ("memory", (9, 9, 9, 9)))
            for number, others_s in enumerate(of, 1)
        ]
        found = self.of_host(*steps).loudest
        self.assertEqual(("hosts/memory", "apt"), (found.where, found.loudest))
        self.assertAlmostEqual(0.045, found.share)

    def test_a_host_that_does_not_answer(self):
        gone = Target("host", "host", prefix=("false",))
        blind = self.look(gone)
        self.assertEqual({"host": None}, blind)
        seen = {"host": Seen(1.0, {})}
        for before, after in ((blind, seen), (seen, blind), (blind, blind)):
            found = busy_vms.between(before, after, {"host": Own([], 0)})
            self.assertEqual({"host": None}, found)

    def test_vms_that_went_meanwhile(self):
        """What they used until then nobody knows."""
        before = {"host": Seen(1.0, {7: 100.0, 8: 5.0})}
        # The second process 8 is another one.
        for later in ({7: 100.0}, {7: 100.0, 8: 0.5}):
            seen = {"host": Seen(11.0, later)}
            found = busy_vms.between(before, seen, {"host": Own([], 0)})
            self.assertEqual({"host": None}, found)

    def test_the_busiest_step(self):
        def step(key, cpu_s, **more):
            one = {"vms": 2, "cpu_s": cpu_s, "most_s": cpu_s, "seconds": 10} | NOBODY
            here = {"key": key, "targets": ["host"]}
            return here | {"beside": {"host": one}} | more

        steps = [step("0/a", 100, warm_up=True), step("1/a", 0.5), step("2/a", 3)]
        found = self.of_host(*steps)
        busy = found.busiest
        self.assertEqual(("2/a", 2, 0.3, 0.3, False), (*busy, busy.idle))
        self.assertIn("2 VMs used 0.30 CPUs, one of them 0.30", found.doubt)
        found = self.of_host(*steps[:2])
        self.assertTrue(found.busiest.idle)
        old = {k: v for k, v in steps[1]["beside"]["host"].items() if k not in NOBODY}
        before = self.of_host({**steps[1], "beside": {"host": old}})
        self.assertEqual((True, None), (before.busiest.idle, before.loudest))
        self.assertEqual("", found.doubt)
        for odd in (step("1/a", "x"), step("1/a", -1), {"key": "1/a"}):
            self.assertRaises(ValueError, self.of_host, odd)
        self.assertRaises(ValueError, busy_vms.of_hosts, {})

    def of_host(self, *steps):
        kinds = {"host": {"kind": "host"}, "vm": {"kind": "guest"}}
        run = {"scenario": {"targets": kinds}, "steps": steps}
        (found,) = busy_vms.of_hosts(run).values()
        return found

    def test_steps_of_which_nothing_is_known(self):
        idle = {"vms": 2, "cpu_s": 0, "most_s": 0, "seconds": 10} | NOBODY
        steps = [
            {"key": "1/a", "targets": ["host"], "beside": {"host": None}},
            {"key": "2/a", "targets": ["host"], "beside": {"host": idle}},
            {"key": "2/b", "targets": ["vm"], "beside": {}},
            {"key": "3/a", "targets": ["host"]},
        ]
        found = self.of_host(*steps)
        self.assertEqual(("1/a", "3/a"), found.unknown)
        self.assertIn("not known of step 1/a, and 1 more", found.doubt)
        self.assertIsNone(self.of_host(steps[0]).busiest)
        self.assertEqual("", self.of_host(*steps[1:3]).doubt)
