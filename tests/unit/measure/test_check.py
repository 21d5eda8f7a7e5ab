# SPDX-License-Identifier: Apache-2.0

import testtools

from nova_perfvm.findings import Finding, Level
from nova_perfvm.measure.checks import check
from nova_perfvm.measure.collect.collected import NotReadError

PASSED = Finding("", Level.OK, "eth0", "20", "20 queues", "ethtool -l eth0")


def check_of(*findings, error=None):
    def find(_subject):
        yield from findings
        if error:
            raise error

    return check.Check(1, "check.example", "It is as it should be.", find)


class CheckTest(testtools.TestCase):
    def test_outcomes(self):
        found = check_of(PASSED, check.skipped("eth3", "no virtio-net device"))
        self.assertEqual(
            [("check.example", Level.OK), ("check.example", Level.UNKNOWN)],
            [(outcome.code, outcome.level) for outcome in found.findings(None)],
        )

    def test_nothing_passes_without_evidence(self):
        for lacking in ({"source": ""}, {"observed": ""}):
            finding = PASSED._replace(**lacking)
            self.assertRaises(AssertionError, check_of(finding).findings, None)

    def test_what_was_not_read_is_skipped(self):
        error = NotReadError("/proc/interrupts", "permission denied")
        self.assertEqual(
            [
                PASSED._replace(code="check.example"),
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
            check_of(PASSED, error=error).findings(None),
        )

    def test_a_check_that_finds_nothing_says_so(self):
        (found,) = check_of().findings(None)
        self.assertEqual(Level.UNKNOWN, found.level)
        self.assertEqual("the machine has nothing to check here", found.observed)
