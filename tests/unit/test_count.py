# SPDX-License-Identifier: Apache-2.0
"""The totals that continuous integration reads."""

import os
import subprocess
import sys
from pathlib import Path

from tests.directory import DirectoryCase

_ROOT = Path(__file__).parents[2]
_SUITE = """\
import unittest
class Suite(unittest.TestCase):
    def test_good(self): pass
    def test_skipped(self): self.skipTest("no disk")
    def test_bad(self): self.assertEqual(1, 2)
    def test_worse(self): raise ValueError("two\\n  lines")
"""


class CountTest(DirectoryCase):
    def stestr(self, regex):
        suite = self.directory / "suite"
        suite.mkdir(exist_ok=True)
        (suite / "__init__.py").touch()
        (suite / "test_suite.py").write_text(_SUITE)
        arguments = ("-m", "stestr", "--test-path", "suite", "--top-dir", ".")
        self.python(*arguments, "run", "--serial", regex)

    def python(self, *arguments):
        return subprocess.run(
            (sys.executable, *arguments),
            check=False,
            capture_output=True,
            text=True,
            cwd=self.directory,
            env=os.environ | {"PYTHONPATH": str(_ROOT)},
        )

    def count(self, *arguments):
        result = self.python("-m", "tests.count", *arguments)
        self.assertEqual("", result.stderr)
        return result.returncode, result.stdout.splitlines()

    def test_how_many_ran(self):
        self.stestr("good")
        passed, few = "1 passed, 0 failed", "1 of 2 tests did not run"
        self.assertEqual((0, [passed]), self.count("0", "1"))
        self.assertEqual((1, [few, passed]), self.count("0", "2"))
        self.assertEqual((1, ["0 passed, 0 failed"]), self.count("1", "0"))

    def test_failures_have_a_line_each(self):
        self.stestr("good")
        self.stestr(".")
        place = "suite.test_suite.Suite.test_"
        status, lines = self.count("1", "4")
        self.assertEqual(1, status)
        self.assertEqual(
            {
                f"{place}skipped: no disk",
                f"FAILED {place}bad: AssertionError: 1 != 2",
                f"FAILED {place}worse: ValueError: two lines",
                "1 passed, 2 failed, 1 skipped",
            },
            set(lines),
        )
        self.assertEqual("1 passed, 2 failed, 1 skipped", lines[-1])
