# SPDX-License-Identifier: Apache-2.0
"""Thousands of odd files of each kind; see :mod:`tests.fuzz`.

``PERFVM_FUZZ_FILES`` says how many of each kind, ``PERFVM_FUZZ_SEED`` which.
"""

import os
import pathlib
import resource

import fixtures
import testtools

from tests.fuzz.commands import KINDS, Cases

FILES = int(os.environ.get("PERFVM_FUZZ_FILES", "1250"))
SEED = os.environ.get("PERFVM_FUZZ_SEED", "perfvm")
# A mistake that hundreds of files show is told once or twice.
_MOST_FAULTS = 3
# Among few odd files there may be none that can be read: then more are tried.
_MANY = 100
_MOST_BYTES = 8 << 30


def limit_memory(test):
    """Let a file that eats the memory fail the test, and not end the machine."""
    _, hard = before = resource.getrlimit(resource.RLIMIT_AS)
    # Beside what the process has: where a chart was drawn, V8 reserved 32 GiB.
    pages, *_ = pathlib.Path("/proc/self/statm").read_text(encoding="utf-8").split()
    most = int(pages) * resource.getpagesize() + _MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    test.addCleanup(resource.setrlimit, resource.RLIMIT_AS, before)


class FilesCase(testtools.TestCase):
    """Commands and odd files of one kind."""

    def setUp(self):
        super().setUp()
        limit_memory(self)
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY"))
        directory = self.useFixture(fixtures.TempDir()).path
        self.cases = Cases(directory, SEED)

    def assert_foreseen(self, kind, files=FILES):
        """Assert that so many odd files of a kind do no harm."""
        found = []
        for number in range(max(files, _MANY)):
            if number >= files and len(self.cases.outcomes) > 1:
                break
            found += self.cases.faults(kind, number)
            if len(found) >= _MOST_FAULTS:
                break
        self.assertEqual([], found, "\n\n".join(found))
        self.assertEqual({True, False}, set(self.cases.outcomes), "is anything read?")


class FilesTest(FilesCase):
    """A test of each kind, so that they run side by side."""


for _kind in KINDS:
    setattr(
        FilesTest, f"test_{_kind}", lambda self, kind=_kind: self.assert_foreseen(kind)
    )
