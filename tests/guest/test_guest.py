# SPDX-License-Identifier: Apache-2.0
"""Guests of 1, 4 and 20 queues: collected inside, judged outside, cured."""

import pathlib
import shutil
import tempfile

import testtools

from nova_perfvm.measure import collector, cure, reading
from nova_perfvm.measure.checks import guest as checks
from nova_perfvm.measure.checks import report
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.outcome import Status
from tests.guest import image, machine

NIC, DISK = "eth0", "vda"
FLOWS, TALK_S, INTERVAL_S = 64, 120, 10
SCRIPT = pathlib.Path(collector.__file__).read_text(encoding="utf-8")


class GuestTest(testtools.TestCase):
    QUEUES = 20

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if missing := [name for name in machine.NEEDED if shutil.which(name) is None]:
            # It is printed, and CI counts it as a test that did not run.
            raise cls.skipException(f"not installed: {', '.join(missing)}")
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        image.build(directory.name)
        cls.guest = machine.Guest(directory.name, queues=cls.QUEUES)
        cls.guest.setUp()
        cls.addClassCleanup(cls.guest.cleanUp)

    def command(self, *argv, stdin=""):
        status, output, errors = self.guest.run(*argv, stdin=stdin)
        self.assertEqual((argv, 0, ""), (argv, status, errors if status else ""))
        return output

    def judge(self):
        """Return {code: outcomes by subject} of the guest under traffic."""
        traffic = self.guest.talk(FLOWS, TALK_S)
        try:
            interval = ("--interval", str(INTERVAL_S))
            told = self.command("python3", "-", "guest", *interval, stdin=SCRIPT)
        finally:
            traffic.kill()
            traffic.wait()
        collected = reading.loads(told, "the guest")
        subject = GuestSubject(collected, None)
        judged = report.run(checks_of(checks), collected, subject)
        return {
            result.code: {outcome.subject: outcome for outcome in result.outcomes}
            for result in judged.results
        }

    def assert_status(self, status, found):
        self.assertEqual(status, found.status, found)


class TwentyQueuesTest(GuestTest):
    def test_sound_then_at_fault_then_cured(self):
        found = self.judge()
        self.assert_status(Status.PASS, found["guest.nic_queues"][NIC])
        for outcomes in (found["guest.nic_vectors"], found["guest.nic_spread"]):
            for outcome in outcomes.values():
                # Of output there may be too few: the guest answers small packets.
                allowed = {Status.PASS, Status.SKIP}
                self.assertIn(outcome.status, allowed, outcome)
        (spread,) = (
            outcome
            for subject, outcome in found["guest.nic_spread"].items()
            if "input" in subject
        )
        self.assert_status(Status.PASS, spread)
        self.assert_status(Status.PASS, found["guest.disk_queues"][DISK])

        self.command("ethtool", "-L", NIC, "combined", "1")
        found = self.judge()
        self.assert_status(Status.FAIL, found["guest.nic_queues"][NIC])
        self.assertIn("ethtool -L", found["guest.nic_queues"][NIC].remedy)

        self.command("sh", "-s", stdin=cure.script())
        found = self.judge()
        self.assert_status(Status.PASS, found["guest.nic_queues"][NIC])
        self.assertIn("Combined:\t20", self.command("ethtool", "-l", NIC))


class FourQueuesTest(GuestTest):
    QUEUES = 4

    def test_queues_are_too_few(self):
        found = self.judge()["guest.nic_queues"][NIC]
        self.assert_status(Status.FAIL, found)
        self.assertIn("4 present", found.observed)


class OneQueueTest(GuestTest):
    QUEUES = 1

    def test_one_cpu_handles_all_and_no_script_cures_it(self):
        self.command("sh", "-s", stdin=cure.script())
        found = self.judge()
        self.assert_status(Status.FAIL, found["guest.nic_queues"][NIC])
        self.assertIn("multiqueue", found["guest.nic_queues"][NIC].remedy)
        (spread,) = (
            outcome
            for subject, outcome in found["guest.nic_spread"].items()
            if "input" in subject
        )
        self.assert_status(Status.FAIL, spread)
