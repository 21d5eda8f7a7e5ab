# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.findings import Finding, Level, worst
from nova_perfvm.measure.checks import check
from nova_perfvm.measure.collect.collected import NotReadError


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
            check.judged(
                *("eth1", "20 queues", "19", "ethtool -l eth1"),
                holds=False,
                otherwise=Level.WARNING,
                remedy="add one",
            ),
            check.failed("eth2", "20 queues", "1", "ethtool -l eth2", "add more"),
            check.skipped("eth3", "no virtio-net device"),
        ).findings(None)
        self.assertEqual(
            [Level.OK, Level.WARNING, Level.FAILURE, Level.UNKNOWN],
            [outcome.level for outcome in found],
        )
        self.assertEqual({"check.example"}, {outcome.code for outcome in found})
        self.assertEqual("add one", found[1].remedy)
        self.assertEqual(Level.FAILURE, worst(found))

    def test_nothing_passes_without_evidence(self):
        for observed, source in (("20", ""), ("", "ethtool -l eth0")):
            finding = check.passed("eth0", "20 queues", observed, source)
            self.assertRaises(AssertionError, check_of(finding).findings, None)

    def test_what_was_not_read_is_skipped(self):
        error = NotReadError("/proc/interrupts", "permission denied")
        seen = check.passed("eth0", "20 queues", "20", "ethtool -l eth0")
        self.assertEqual(
            [
                seen._replace(code="check.example"),
                Finding(
                    "check.example",
                    Level.UNKNOWN,
                    "",
                    "permission denied",
                    "",
                    "/proc/interrupts",
                    "run collect as root (sudo), and collect again",
                ),
            ],
            check_of(seen, error=error).findings(None),
        )

    def test_a_check_that_finds_nothing_says_so(self):
        (found,) = check_of().findings(None)
        self.assertEqual(Level.UNKNOWN, found.level)
        self.assertEqual("there is nothing that it is about", found.observed)
