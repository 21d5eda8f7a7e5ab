# SPDX-License-Identifier: Apache-2.0
"""Runs commands of the console script, and writes the files that they read."""

from pathlib import Path

import fixtures

from nova_perfvm.facts import snapshot
from tests import console
from tests.directory import DirectoryCase


class CommandCase(DirectoryCase):
    """The console script's function, as a process would call it."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY"))

    def run_command(self, *arguments):
        """Run a command, keep what it prints, and give its exit status."""
        status, self.stdout, self.stderr = console.run(*arguments)
        self.assertNotIn("Traceback", self.stderr)
        return status

    def assert_refused(self, status, words, *arguments):
        """Assert one clear message, an exit status, and no output."""
        self.assertEqual(status, self.run_command(*arguments))
        self.assertIn(words, self.stderr)
        self.assertEqual("", self.stdout)

    def file(self, text):
        """Return the path of a new file."""
        path = Path(self.useFixture(fixtures.TempDir()).path) / "perfvm.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def write(self, name, text):
        """Return the path of a file in the directory."""
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def save(self, cloud, name="cloud.json"):
        """Return the path of a snapshot in the directory."""
        self.path = self.write(name, snapshot.dumps(cloud.snapshot()))
        return self.path
