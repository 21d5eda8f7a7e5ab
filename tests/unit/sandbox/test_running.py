# SPDX-License-Identifier: Apache-2.0
"""Commands that are run to their end."""

import sys
from pathlib import Path

import fixtures
import testtools

from tests.processes import running
from tests.processes.errors import SandboxError


class RunTest(testtools.TestCase):
    def test_output_is_given_and_logged_without_the_password(self):
        log = Path(self.useFixture(fixtures.TempDir()).path) / "log"

        def run(code):
            command = [sys.executable, "-c", f"import sys; {code}", "openstack:s3cret@"]
            return running.run(command, log=log, password="s3cret")

        self.assertEqual("openstack:s3cret@\n", run("print(sys.argv[1])"))
        words = "sys.exit(f'cannot reach {sys.argv[1]}')"
        failure = str(self.assertRaises(SandboxError, run, words))

        self.assertIn(f"failed with 1 (all of it is in {log})", failure)
        for text in (failure, log.read_text()):
            self.assertNotIn("s3cret", text)
            self.assertIn("cannot reach openstack:***@", text)
