# SPDX-License-Identifier: Apache-2.0
"""A fault is planted in its module and seen by a test that reaches it."""

import os
import pathlib
import re
import sys

import testtools

from tests.mutants import __main__ as mutants

PATH = "nova_perfvm/rules/packing.py"
SOURCE = pathlib.Path(PATH).read_text(encoding="utf-8")
TESTS = "tests.unit.rules.test_packing"
OURS = re.compile(r"nova_perfvm|tests\.unit\.rules")


def fault(source, line=1):
    """Return a fault of PATH with a source."""
    return mutants.Fault(PATH, line, "", "", "", source)


def status(found, tests):
    """Plant a fault in a process of its own; return the process's status."""
    if not (child := os.fork()):
        for name in filter(OURS.match, list(sys.modules)):
            del sys.modules[name]
        os._exit(mutants.planted(found, tests)[0])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class PlantedTest(testtools.TestCase):
    def test_faults(self):
        for name, source, expected in (
            ("none", SOURCE, mutants.SURVIVED),
            ("seen", f"{SOURCE}\nscore = None\n", mutants.KILLED),
            ("not to be imported", "import nothing_of_this_name\n", mutants.BROKEN),
        ):
            self.assertEqual(expected, status(fault(source), [TESTS]), name)


REACH = {
    "lines": {PATH: {"5": ["tests.unit.cloud.x", "tests.unit.rules.test_packing.y"]}},
    "seconds": {
        "tests.unit.cloud.x": 1.0,
        "tests.unit.rules.test_packing.y": mutants.BUDGET,
    },
}


class NearestTest(testtools.TestCase):
    def test_tests_of_the_module_come_first_and_fill_the_budget(self):
        own = "tests.unit.rules.test_packing.y"
        for name, line in (("the line", 5), ("a default, run at import", 1)):
            self.assertEqual([own], mutants.nearest(fault("", line), REACH), name)

    def test_no_test_reaches_it(self):
        reach = {"lines": {}, "seconds": {}}
        self.assertEqual([], mutants.nearest(fault(""), reach))
