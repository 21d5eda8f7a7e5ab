# SPDX-License-Identifier: Apache-2.0
"""Commands that are run to their end."""

import sys
from pathlib import Path

import fixtures
import testtools

from nova_perfvm.sandbox.processes import running
from nova_perfvm.sandbox.processes.errors import SandboxError


class RunTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = Path(self.useFixture(fixtures.TempDir()).path) / "log"

    def run_python(self, code, *arguments, **options):
        command = [sys.executable, "-c", code, *arguments]
        return running.run(command, log=self.log, **options)

    def test_output_is_given_and_logged(self):
        said = self.run_python("import sys; print(sys.argv[1])", "hello")

        self.assertEqual("hello\n", said)
        self.assertIn("hello", self.log.read_text())

    def test_a_failure_shows_the_end_of_the_output(self):
        error = self.assertRaises(
            SandboxError, self.run_python, "print('last words'); raise SystemExit(3)"
        )

        for words in ("failed with 3", "last words", str(self.log)):
            self.assertIn(words, str(error))

    def test_a_password_is_nowhere_to_be_seen(self):
        error = self.assertRaises(
            SandboxError,
            self.run_python,
            "import sys; sys.exit(f'cannot reach {sys.argv[1]}')",
            "mysql://openstack:s3cret@127.0.0.1/nova",
            password="s3cret",
        )

        for text in (str(error), self.log.read_text()):
            self.assertNotIn("s3cret", text)
            self.assertIn("openstack:***@", text)
