# SPDX-License-Identifier: Apache-2.0
"""The table of the releases of Nova that tests ran on."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import fixtures
import testtools

_ROOT = Path(__file__).parents[2]
_SUITE = """\
import unittest
class Suite(unittest.TestCase):
    def test_good(self): pass
    def test_mended(self): self.assertEqual("yes", {mended!r})
    def test_skipped(self): self.skipTest("no disk")
"""


class TableTest(testtools.TestCase):
    def run_tests(self, suite, regex, mended="no", directory=None):
        directory = directory or Path(self.useFixture(fixtures.TempDir()).path)
        package = directory / "tests" / suite
        package.mkdir(parents=True, exist_ok=True)
        for folder in (package.parent, package):
            (folder / "__init__.py").touch()
        (package / "test_suite.py").write_text(_SUITE.format(mended=mended))
        self.python(
            *("-m", "stestr", "--test-path", f"tests/{suite}", "--top-dir", "."),
            *("run", "--serial", regex),
            cwd=directory,
        )
        return directory

    def python(self, *arguments, cwd=_ROOT):
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        return subprocess.run(
            (sys.executable, *arguments),
            check=False,
            capture_output=True,
            text=True,
            cwd=cwd,
            env=environment,
        )

    def test_a_row_for_each_cycle(self):
        first = self.run_tests("unit", "good|mended")
        mended = self.run_tests("unit", "mended", mended="yes")
        whole = self.run_tests("functional", ".")
        result = self.python(
            *("-m", "tests.releases", f"2026.2={whole}"),
            *(f"2025.1={directory}" for directory in (first, mended)),
        )
        self.assertEqual(
            [
                "Cycle,Nova,Placement,unit tests,functional tests",
                "2025.1,31.3.1,13.0.1,2 passed,3 not run",
                '2026.2,34.0.0,16.0.0,2 not run,"1 passed, 1 failed, 1 skipped"',
            ],
            result.stdout.splitlines(),
            result.stderr,
        )


class PageTest(testtools.TestCase):
    def test_every_release_was_tested_and_nothing_failed(self):
        text = (_ROOT / "doc/source/admin/releases.csv").read_text()
        rows = list(csv.DictReader(text.splitlines()))
        self.assertGreater(len(rows), 3)
        for row in rows:
            for suite in ("unit tests", "functional tests"):
                passed, *others = row[suite].split(", ")
                self.assertRegex(passed, r"^\d+ passed$", row)
                self.assertNotIn("failed", " ".join(others), row)
