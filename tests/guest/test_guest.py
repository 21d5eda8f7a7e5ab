# SPDX-License-Identifier: Apache-2.0
"""Guests of 1 and 20 queues: collected inside, judged outside, cured."""

import pathlib

from nova_perfvm.findings import Level
from nova_perfvm.measure.checks import guest as checks
from nova_perfvm.measure.checks import queue_script, report
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.checks.guest_subject import GuestSubject
from nova_perfvm.measure.collect import collector, reading
from tests.guest import machine

NIC, DISK = "eth0", "vda"
# Machines that others use, too, may need the longer intervals.
FLOWS, TALK_S, INTERVALS_S = 64, 900, (10, 40, 160)
SCRIPT = pathlib.Path(collector.__file__).read_text(encoding="utf-8")


class GuestTest(machine.GuestCase):
    QUEUES = 20

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.guest = cls.started(machine.Guest, queues=cls.QUEUES)

    def command(self, *argv, stdin=""):
        status, output, errors = self.guest.run(*argv, stdin=stdin)
        self.assertEqual((argv, 0, ""), (argv, status, errors if status else ""))
        return output

    def judge(self):
        """Return {code: outcomes by subject} of the guest under traffic enough."""
        traffic = self.guest.talk(FLOWS, TALK_S)
        try:
            for interval in INTERVALS_S:
                found = self.judged(interval)
                if "too few" not in self.spread(found).observed:
                    break
        finally:
            traffic.kill()
            traffic.wait()
        return found

    def judged(self, interval):
        asked = ("guest", "--interval", str(interval))
        told = self.command("python3", "-", *asked, stdin=SCRIPT)
        collected = reading.loads(told, "the guest")
        subject = GuestSubject(collected, None)
        judged = report.run(checks_of(checks), collected, subject)
        return {
            result.code: {outcome.subject: outcome for outcome in result.findings}
            for result in judged.results
        }

    def spread(self, found):
        """Return what is said of the interrupts of input."""
        (outcome,) = (
            outcome
            for subject, outcome in found["guest.nic_spread"].items()
            if "input" in subject
        )
        return outcome

    def assert_status(self, status, found):
        self.assertEqual(status, found.level, found)


class TwentyQueuesTest(GuestTest):
    def test_sound_then_at_fault_then_cured(self):
        found = self.judge()
        self.assert_sound(found)
        self.assert_status(Level.OK, found["guest.disk_queues"][DISK])

        self.command("ethtool", "-L", NIC, "combined", "1")
        found = self.judge()
        self.assert_status(Level.FAILURE, found["guest.nic_queues"][NIC])
        self.assertIn("ethtool -L", found["guest.nic_queues"][NIC].remedy)

        self.command("sh", "-s", stdin=queue_script.script())
        self.assert_sound(self.judge())
        # So many there are, and so many are enabled.
        channels = self.command("ethtool", "-l", NIC)
        self.assertEqual(2, channels.count("Combined:\t20\n"), channels)

    def assert_sound(self, found):
        """Look that there are all queues, each on its CPU, and that all are used."""
        self.assert_status(Level.OK, found["guest.nic_queues"][NIC])
        for code in ("guest.nic_vectors", "guest.nic_spread"):
            for outcome in found[code].values():
                # Of output there may be too few: the guest answers small packets.
                allowed = {Level.OK, Level.UNKNOWN}
                self.assertIn(outcome.level, allowed, outcome)
        self.assert_status(Level.OK, self.spread(found))


class OneQueueTest(GuestTest):
    QUEUES = 1

    def test_one_cpu_handles_all_and_no_script_cures_it(self):
        self.command("sh", "-s", stdin=queue_script.script())
        found = self.judge()
        self.assert_status(Level.FAILURE, found["guest.nic_queues"][NIC])
        self.assertIn("multiqueue", found["guest.nic_queues"][NIC].remedy)
        self.assert_status(Level.FAILURE, self.spread(found))
