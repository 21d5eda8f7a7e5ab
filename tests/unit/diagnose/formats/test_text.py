# SPDX-License-Identifier: Apache-2.0

import io

import testtools

from nova_perfvm.diagnose.formats import text
from nova_perfvm.findings import Finding, Level


def failure(subject, observed, remedy=""):
    return Finding("a.b", Level.FAILURE, subject, observed, "1", "/proc", remedy)


class FindingsTest(testtools.TestCase):
    def test_the_worst_first_and_each_rule_once(self):
        told = text.findings(
            [
                Finding("c.d", Level.OK, "x", "holds"),
                Finding("e.f", Level.UNKNOWN, "x", "not read"),
                Finding("g.h", Level.UNKNOWN, "y", "not read"),
                failure("x", "2", "do it"),
                failure("y", "3", "do it"),
                failure("z", "3", "do it"),
            ]
        )
        self.assertEqual(
            "FAILURE\n  a.b\n    x: 2\n    3 (y; z)\n    expected: 1\n"
            "    seen in: /proc\n    remedy: do it\n\n"
            "UNKNOWN\n  e.f, g.h\n    not read\n\nOK\n  c.d: x: holds\n",
            told,
        )
        self.assertEqual("", text.findings([]))

    def test_no_word_is_broken_and_commands_stay_commands(self):
        path, command = "/sys/" + "x" * 50, "openstack server resize " + "y-z " * 20
        told = text.findings([failure(path, "a-b " * 40, command)], 60)
        self.assertLessEqual(max(map(len, told.splitlines())), 60)
        self.assertIn(path, told)
        remedy = told.partition("remedy: ")[2].replace("\\\n", " ")
        self.assertEqual(command.split(), remedy.split())

    def test_without_a_terminal(self):
        self.assertEqual(100, text.width(io.StringIO()))
