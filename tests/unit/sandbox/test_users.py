# SPDX-License-Identifier: Apache-2.0
"""Whoever runs it: root, or a user of whom the system knows a number only."""

from pathlib import Path
from unittest import mock

import fixtures
import testtools

from nova_perfvm.sandbox.processes import ports
from nova_perfvm.sandbox.processes.databases import Databases
from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.layout import Layout, default_directory
from nova_perfvm.sandbox.processes.servers import SandboxServers
from nova_perfvm.sandbox.processes.settings import SandboxSettings

NOBODY = 4294967290


class DefaultDirectoryTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        for name in ("HOME", "XDG_CACHE_HOME"):
            self.useFixture(fixtures.EnvironmentVariable(name))
        self.useFixture(fixtures.MonkeyPatch("os.getuid", lambda: NOBODY))

    def test_without_a_home(self):
        error = self.assertRaises(SandboxError, default_directory)

        self.assertIn(f"user {NOBODY} has no home directory", str(error))

    def test_what_is_set(self):
        for name, expected in (
            ("HOME", "/x/.cache/nova_perfvm/sandbox"),
            ("XDG_CACHE_HOME", "/x/nova_perfvm/sandbox"),
        ):
            with fixtures.EnvironmentVariable(name, "/x"):
                self.assertEqual(Path(expected), default_directory())


class ServersTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        directory = Path(self.useFixture(fixtures.TempDir()).path)
        self.layout = Layout(directory)
        self.settings = SandboxSettings(
            "dedicated:2x20", "0", dict.fromkeys(ports.NAMES, 1), "secret"
        )
        self.environment = Environment(directory / "venv")
        self.commands = []
        for name, double in (
            ("running.run", lambda command, **_: self.commands.append(command)),
            ("waiting.until_ready", lambda *_: None),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f"nova_perfvm.sandbox.processes.{name}", double)
            )

    def be(self, uid):
        self.commands.clear()
        self.useFixture(fixtures.MonkeyPatch("os.geteuid", lambda: uid))

    def test_mariadb(self):
        processes = mock.Mock()
        for uid, expected in ((0, ["--user=root"]), (NOBODY, [])):
            self.be(uid)
            servers = SandboxServers(
                self.layout, self.settings, mock.MagicMock(), processes
            )
            servers.start_mariadb()

            for command in (self.commands[0], processes.start.call_args.args[1]):
                found = [part for part in command if str(part).startswith("--user")]
                self.assertEqual(expected, found)

    def test_keystones_keys(self):
        """Of another user than LOGNAME says: sudo may keep it."""
        self.useFixture(fixtures.EnvironmentVariable("LOGNAME", "alice"))
        self.useFixture(fixtures.MonkeyPatch("os.getegid", lambda: 7))
        databases = Databases(
            self.layout, self.settings, self.environment, mock.MagicMock(), {}
        )
        self.environment.schemas.mkdir(parents=True)
        (self.environment.schemas / "keystone.sql").touch()
        for uid, expected in (
            (0, ["--keystone-user", "0", "--keystone-group", "7"]),
            (NOBODY, []),
        ):
            self.be(uid)
            databases._keystone()

            setup = next(c for c in self.commands if "fernet_setup" in c)
            self.assertEqual(expected, setup[setup.index("fernet_setup") + 1 :])
