# SPDX-License-Identifier: Apache-2.0

import os
import socket
from pathlib import Path

import fixtures
import testtools

from nova_perfvm.policy import loader
from tests.processes import ports, state
from tests.processes import settings as kept_settings
from tests.processes.errors import SandboxError
from tests.processes.layout import default_directory
from tests.processes.sandbox import Sandbox


class SandboxTest(testtools.TestCase):
    """What is refused before anything is started."""

    def setUp(self):
        super().setUp()
        self.directory = Path(self.useFixture(fixtures.TempDir()).path) / "state"
        self.sandbox = Sandbox(self.directory)
        # Whether the servers are installed here does not matter.
        self.useFixture(
            fixtures.MonkeyPatch("tests.processes.programs.find_programs", lambda: None)
        )

    def refused(self, **options):
        return str(self.assertRaises(SandboxError, self.sandbox.up, **options))

    def keep(self, hosts="dedicated:2x20", digest="0" * 64):
        settings = kept_settings.new_settings(hosts, digest)
        with state.claim(self.sandbox.layout):
            kept_settings.save(settings, self.sandbox.layout.settings)
        return settings

    def test_bad_options_change_nothing(self):
        self.assertIn("--hosts", self.refused(hosts="x"))
        self.assertFalse(self.directory.exists())

    def test_without_a_sandbox(self):
        self.assertEqual([], self.sandbox.status())
        self.sandbox.down()
        self.sandbox.wipe()
        error = self.assertRaises(SandboxError, self.sandbox.exports)
        self.assertIn("python -m tests.sandbox up", str(error))
        self.assertFalse(self.directory.exists())

    def test_other_hosts_or_processes_than_it_was_made_with(self):
        self.keep()
        said = self.refused(hosts="2xdedicated:2x20")
        self.assertIn("--hosts dedicated:2x20", said)
        self.assertIn("wipe it first", said)
        said = self.refused(hosts="dedicated:2x20", volumes=True)
        self.assertIn("without --volumes", said)
        names = ["nova-compute-a"]
        error = self.assertRaises(SandboxError, self.sandbox.restart, names)
        self.assertIn("no process 'nova-compute-a': see", str(error))
        error = self.assertRaises(SandboxError, self.sandbox.restart, ["cinder"])
        self.assertIn("no process 'cinder': see", str(error))

    def test_hosts_for_a_sandbox_that_is_not_up(self):
        add = self.sandbox.add
        self.assertIn("no sandbox", str(self.assertRaises(SandboxError, add, "1")))
        self.assertFalse(self.directory.exists())
        settings = self.keep()
        self.sandbox.layout.policy.parent.mkdir(parents=True)
        self.sandbox.layout.policy.write_text(loader.dump(loader.load()))
        self.assertIn("is down", str(self.assertRaises(SandboxError, add, "1")))
        record = self.sandbox.processes.adopt("mariadb", os.getpid())
        self.assertTrue(record.alive)
        said = str(self.assertRaises(SandboxError, add, "1"))
        self.assertIn("restart nova-compute-dedicated1, and", said)
        self.assertEqual(settings, self.sandbox.settings)
        self.assertFalse((self.sandbox.layout.etc / "hosts").exists())

    def test_settings_are_kept_and_private(self):
        settings = self.keep()

        self.assertEqual(settings, self.sandbox.settings)
        path = self.sandbox.layout.settings
        self.assertEqual(0o600, path.stat().st_mode & 0o777)
        path.write_text('{"hosts": 1}')
        self.assertIn("python -m tests.sandbox wipe", self.refused())

    def test_wipe(self):
        self.keep()
        (self.directory / "venv").mkdir()
        self.sandbox.wipe()
        self.assertFalse(self.directory.exists())


class DefaultDirectoryTest(testtools.TestCase):
    def test_what_is_set(self):
        for name, expected in (
            ("HOME", "/x/.cache/nova_perfvm/sandbox"),
            ("XDG_CACHE_HOME", "/x/nova_perfvm/sandbox"),
        ):
            self.useFixture(fixtures.EnvironmentVariable("XDG_CACHE_HOME"))
            with fixtures.EnvironmentVariable(name, "/x"):
                self.assertEqual(Path(expected), default_directory())


class PortsTest(testtools.TestCase):
    def test_ports_are_free_and_distinct(self):
        chosen = ports.choose_ports()

        self.assertEqual(set(ports.NAMES), set(chosen))
        self.assertEqual(len(ports.NAMES), len(set(chosen.values())))
        self.assertEqual([], ports.taken(chosen.values()))
        with socket.socket() as server:
            server.bind((ports.ADDRESS, chosen["mariadb"]))
            server.listen()
            self.assertEqual([chosen["mariadb"]], ports.taken(chosen.values()))
