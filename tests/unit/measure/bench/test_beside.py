# SPDX-License-Identifier: Apache-2.0

import asyncio
import pathlib
import shutil
import subprocess
import time

import fixtures
import testtools

from nova_perfvm.measure.bench import beside
from nova_perfvm.measure.bench.beside import Seen
from nova_perfvm.measure.bench.scenario import Target

HOST = Target("host", "host")
PATIENCE_S = 60


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
        return asyncio.run(beside.look(targets))

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
        found = beside.between(before, after)["host"]
        self.assertGreaterEqual(found["vms"], 2)
        self.assertGreaterEqual(found["cpu_s"], 0.2)
        self.assertGreater(found["seconds"], 0)

    def test_a_host_that_does_not_answer(self):
        gone = Target("host", "host", prefix=("false",))
        self.assertEqual({}, self.look(gone))
        self.assertEqual({}, beside.between({"host": Seen(1.0, {})}, {}))

    def test_vms_that_came_meanwhile(self):
        before, after = Seen(1.0, {7: 100.0, 8: 5.0}), Seen(11.0, {7: 100.5, 9: 2.0})
        self.assertEqual(
            {"host": {"vms": 2, "cpu_s": 2.5, "seconds": 10.0}},
            beside.between({"host": before}, {"host": after}),
        )

    def test_the_busiest_step(self):
        def step(key, cpu_s, **more):
            one = {"vms": 2, "cpu_s": cpu_s, "seconds": 10}
            return {"key": key, "beside": {"host": one}} | more

        steps = [step("0/a", 100, warm_up=True), step("1/a", 0.5), step("2/a", 3)]
        found = beside.busiest({"steps": steps})["host"]
        self.assertEqual(("2/a", 2, 0.3, False), (*found, found.idle))
        self.assertTrue(beside.busiest({"steps": steps[:2]})["host"].idle)
        self.assertEqual({}, beside.busiest({"steps": [{"key": "1/a"}]}))
        for odd in ({}, {"steps": [step("1/a", "x")]}, {"steps": [step("1/a", -1)]}):
            self.assertRaises(ValueError, beside.busiest, odd)
