# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.measure.checks import check
from nova_perfvm.measure.collected import NotReadError
from nova_perfvm.measure.outcome import Outcome, Status, worst


def check_of(*findings, error=None):
    def find(_subject):
        yield from findings
        if error:
            raise error

    return check.Check(1, "check.example", "It is as it should be.", find)


class CheckTest(testtools.TestCase):
    def test_outcomes(self):
        found = check_of(
            check.passed("eth0", "20 queues", "20", "ethtool -l eth0"),
            check.warned("eth1", "20 queues", "19", "ethtool -l eth1", "add one"),
            check.failed("eth2", "20 queues", "1", "ethtool -l eth2", "add more"),
            check.skipped("eth3", "no virtio-net device"),
        ).outcomes(None)
        self.assertEqual(
            [Status.PASS, Status.WARN, Status.FAIL, Status.SKIP],
            [outcome.status for outcome in found],
        )
        self.assertEqual({"check.example"}, {outcome.code for outcome in found})
        self.assertEqual("add one", found[1].remedy)
        self.assertEqual(Status.FAIL, worst(found))

    def test_judged(self):
        named = ("eth0", "20 queues", "20", "ethtool -l eth0")
        for holds, otherwise, status in (
            (True, Status.FAIL, Status.PASS),
            (False, Status.FAIL, Status.FAIL),
            (False, Status.WARN, Status.WARN),
        ):
            finding = check.judged(
                *named, holds=holds, remedy="add more", otherwise=otherwise
            )
            self.assertEqual(status, finding.status)
            self.assertEqual("" if holds else "add more", finding.remedy)

    def test_nothing_passes_without_evidence(self):
        for observed, source in (("20", ""), ("", "ethtool -l eth0")):
            finding = check.passed("eth0", "20 queues", observed, source)
            self.assertRaises(AssertionError, check_of(finding).outcomes, None)

    def test_what_was_not_read_is_skipped(self):
        error = NotReadError("/proc/interrupts", "permission denied")
        seen = check.passed("eth0", "20 queues", "20", "ethtool -l eth0")
        self.assertEqual(
            [
                Outcome("check.example", "eth0", Status.PASS, *seen[2:]),
                Outcome(
                    "check.example",
                    "",
                    Status.SKIP,
                    "",
                    "permission denied",
                    "/proc/interrupts",
                    "run collect as root (sudo), and collect again; or take a "
                    "sosreport",
                ),
            ],
            check_of(seen, error=error).outcomes(None),
        )

    def test_a_check_that_finds_nothing_says_so(self):
        (found,) = check_of().outcomes(None)
        self.assertEqual(Status.SKIP, found.status)
        self.assertEqual("there is nothing that it is about", found.observed)

    def test_exit_codes(self):
        self.assertEqual(
            {"pass": 0, "skip": 0, "warn": 1, "fail": 2},
            {status.value: status.exit_code for status in Status},
        )
        self.assertEqual(Status.SKIP, worst([]))
