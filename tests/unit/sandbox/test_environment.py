# SPDX-License-Identifier: Apache-2.0
"""The environment that sandboxes share, with nothing installed into it."""

import threading
from pathlib import Path

import fixtures
import testtools

from tests.processes.environment import Environment
from tests.processes.errors import SandboxError


class EnvironmentTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        directory = Path(self.useFixture(fixtures.TempDir()).path)
        self.directory = directory / "shared" / "venv"
        self.log = directory / "log"
        self.commands = []
        self.useFixture(
            fixtures.MonkeyPatch("tests.processes.running.run", self.run_command)
        )

    def run_command(self, command, *, log):
        self.assertEqual(self.log, log)
        self.commands.append(" ".join(command))

    def prepare(self, **how):
        Environment(self.directory).prepare(self.log, lambda _text: None, **how)

    def test_all_is_installed_once(self):
        self.prepare()
        first = list(self.commands)
        # One that can only be read will do then; but root may write everything.
        (self.directory / ".nova-perfvm-lock").unlink()
        self.prepare()

        self.assertFalse((self.directory / ".nova-perfvm-lock").exists())
        self.assertEqual(3, len(first))
        for command, words in zip(
            first, ("-m venv", " nova ", "--no-build-isolation"), strict=True
        ):
            self.assertIn(words, command)
        self.assertEqual(first, self.commands)

    def test_cinder_is_added_once(self):
        self.prepare()
        self.prepare(volumes=True)
        self.assertEqual([True], [c.endswith(" cinder") for c in self.commands[3:]])

        self.prepare()
        self.prepare(volumes=True)

        self.assertEqual(4, len(self.commands))

    def test_one_sandbox_installs_and_the_other_waits(self):
        def meet(command, **_options):
            if not self.commands:
                other.start()
            self.commands.append(command)

        other = threading.Thread(target=self.prepare)
        with fixtures.MonkeyPatch("tests.processes.running.run", meet):
            self.prepare()
            other.join()

        self.assertEqual(3, len(self.commands))

    def test_an_update_that_fails_is_repeated(self):
        """Even by the version that was installed before."""
        self.prepare()
        mine = "tests.processes.environment.OPENSTACK"

        def fail(*_args, **_options):
            raise SandboxError("no network")

        with (
            fixtures.MonkeyPatch(mine, ("newer",)),
            fixtures.MonkeyPatch("tests.processes.running.run", fail),
        ):
            self.assertRaises(SandboxError, self.prepare)
        self.prepare()

        self.assertEqual(6, len(self.commands))
