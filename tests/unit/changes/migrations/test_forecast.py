# SPDX-License-Identifier: Apache-2.0
"""Cases calculated by hand: a speed of 100 MiB of pages a second, 1000 MiB of them."""

import math

import testtools

from nova_perfvm.changes.migrations.forecast import Forecast, Limits, Writing, forecast

# QEMU sends 8 bytes with each page.
BANDWIDTH = 100 * 4104 / 4096
IDLE = Writing(1000, 0, 1000)
# Writes to whatever it has twice as fast as it is sent.
BUSY = Writing(1000, 200, 1000)


def limits(downtime_s=0.33, **more):
    return Limits(((0, downtime_s),), **more)


class RoundsTest(testtools.TestCase):
    def assert_found(self, expected, *arguments):
        found = forecast(*arguments)
        self.assertEqual(expected.outcome, found.outcome)
        for name in ("time_s", "downtime_s", "throttle"):
            was, is_ = getattr(expected, name), getattr(found, name)
            self.assertAlmostEqual(was, is_, 3, f"{name} of {found}")

    def test_nothing_is_written(self):
        # 9.7 s, in pieces of 0.05 s, until 30 MiB are left, for which 33 are allowed.
        expected = Forecast("converges", 10.0, 0.3)
        self.assert_found(expected, IDLE, BANDWIDTH, limits())
        # The rest goes at ten times the speed once the guest stands still.
        expected = Forecast("converges", 9.73, 0.03)
        self.assert_found(expected, IDLE, BANDWIDTH, limits(), 10 * BANDWIDTH)

    def test_a_second_round(self):
        # 9.7 s write to 1000 * (1 - exp(-0.0485)) = 47.343 MiB, of which 3 % were
        # not sent yet: 45.922 and 30 are left. 0.45 s send 45 of these, write to
        # 2.247, of which 0.031 were not sent yet: 30.922 + 2.178 = 33.1 remain.
        # 0.05 s send 5 of these, and 0.25 * (1 - 0.0281) are new: 28.343 remain.
        guest = Writing(1000, 5, 1000)
        expected = Forecast("converges", 9.7 + 0.45 + 0.05 + 0.28343, 0.28343)
        self.assert_found(expected, guest, BANDWIDTH, limits())

    def test_a_working_set_that_fits_into_the_downtime(self):
        # However fast: 20 * 0.97 MiB of it and 30 are left, then 29.4 in 0.2 s.
        guest = Writing(1000, 10_000, 20)
        expected = Forecast("converges", 9.7 + 0.2 + 0.294, 0.294)
        self.assert_found(expected, guest, BANDWIDTH, limits())

    def test_what_does_not_converge(self):
        for more, expected in (
            ({}, Forecast("never", math.inf)),
            ({"timeout_s": 60}, Forecast("aborted", 60)),
            # Each round leaves 33 + x, and x is 967 * (1 - exp(-0.002 * x)): 752; at
            # 60 s less is left, as a round is under way.
            ({"timeout_s": 60, "action": "pause"}, Forecast("paused", 67.5, 7.5)),
            ({"timeout_s": 60, "action": "post-copy"}, Forecast("post-copy", 67.5)),
        ):
            found = forecast(BUSY, BANDWIDTH, limits(**more))
            self.assertEqual(expected.outcome, found.outcome)
            if expected.time_s < math.inf:
                self.assertAlmostEqual(expected.time_s, found.time_s, delta=0.4)
            self.assertAlmostEqual(expected.downtime_s, found.downtime_s, delta=0.4)
            self.assertEqual(expected.outcome in {"paused", "post-copy"}, found.moved)

    def test_the_downtime_rises(self):
        # 200 * (1 - 0.45) writes of pages that were sent are more than 100; a quarter
        # of a second later they are 200 * (1 - 0.55).
        rising = Limits(((0, 4.5), (600, 5.5)), timeout_s=1200)
        found = forecast(BUSY, BANDWIDTH, rising)
        self.assertEqual(("converges", "yes"), (found.outcome, str(found)))
        self.assertGreater(found.time_s, 600)
        early = Limits(rising.downtimes[:1], timeout_s=600)
        self.assertEqual("aborted", forecast(BUSY, BANDWIDTH, early).outcome)

    def test_auto_converge(self):
        # 20 % after two rounds, 30 % after two more, until no more than half of what is
        # sent is written: 200 * (1 - 0.8). Less than all suffices to converge.
        found = forecast(BUSY, BANDWIDTH, limits(auto_converge=True))
        self.assertEqual("converges", found.outcome)
        self.assertAlmostEqual(0.8, found.throttle)
        self.assertEqual(f"yes, throttled by {found.throttle:.0%}", str(found))
        self.assertEqual(
            0, forecast(IDLE, BANDWIDTH, limits(auto_converge=True)).throttle
        )
        # Nobody can throttle it enough.
        wild = Writing(1000, 1e6, 1000)
        found = forecast(wild, BANDWIDTH, limits(auto_converge=True))
        self.assertEqual(("never", 0.99), (found.outcome, found.throttle))

    def test_less_is_left_than_is_sent_before_a_look(self):
        # 199 times 5 MiB in 0.05 s, then the last 5, as only 4 may be left.
        expected = Forecast("converges", 10.0)
        self.assert_found(expected, IDLE, BANDWIDTH, limits(0.04))
        # QEMU that keeps to a bandwidth sends 10 in 0.1 s; the last as fast as it can.
        expected = Forecast("converges", 9.95)
        self.assert_found(expected, IDLE, BANDWIDTH, limits(0.04), 2 * BANDWIDTH)


class MeasuredTest(testtools.TestCase):
    def test_a_page_counts_once(self):
        # 100 writes to 100 pages meet 63.2 of them.
        guest = Writing.measured(1000, 63.212, 1, 100)
        self.assertAlmostEqual(100, guest.rate, 2)
        self.assertAlmostEqual(63.212, guest.dirtied(1, 0), 2)
        self.assertAlmostEqual(63.212, guest.dirtied(2, 0.5), 2)
        # Of a large set hardly one is met twice.
        self.assertAlmostEqual(63.2, Writing.measured(1e6, 63.2, 1, 1e6).rate, 1)

    def test_all_of_the_set(self):
        for rate in (100, 5000):
            guest = Writing.measured(1000, rate, 1, 100)
            self.assertAlmostEqual(100, guest.dirtied(1, 0), delta=1.1)
        self.assertEqual(0, Writing.measured(1000, 0, 1, 0).dirtied(9, 0))
