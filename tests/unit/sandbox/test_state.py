# SPDX-License-Identifier: Apache-2.0
"""Whose a directory is, and who works on it."""

import contextlib
import os
import shutil
from pathlib import Path
from unittest import mock

import fixtures
import testtools

from nova_perfvm.sandbox.processes import state
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.layout import Layout
from nova_perfvm.sandbox.processes.sandbox import Sandbox


class StateTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = Path(self.useFixture(fixtures.TempDir()).path) / "state"
        self.layout = Layout(self.directory)
        self.sandbox = Sandbox(self.directory)

    def make(self, *names):
        """Make files in the directory, empty ones."""
        for name in names:
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def claim(self):
        with state.claim(self.layout):
            pass


class ClaimTest(StateTest):
    def test_a_directory_of_somebody_else_is_left_alone(self):
        """Names prove nothing: dpkg's directory has a lock, any project a venv."""
        for names in (
            ("lock", "status", "info/x"),
            ("venv/bin/python",),
            ("sandbox.json", "lock"),
            ("thesis.txt",),
        ):
            self.make(*names)
            for command in (self.claim, self.sandbox.wipe, self.sandbox.down):
                error = self.assertRaises(SandboxError, command)
                self.assertIn("has other files in it", str(error), names)
            for name in names:
                self.assertTrue((self.directory / name).exists(), name)
                (self.directory / name).unlink()
        self.layout.lock.write_text("1234\n")
        self.assertRaises(SandboxError, self.claim)
        self.assertEqual("1234\n", self.layout.lock.read_text())

    def test_a_planted_link_is_not_followed(self):
        target = self.directory.parent / "empty"
        target.touch()
        self.directory.mkdir()
        self.layout.lock.symlink_to(target)
        error = self.assertRaises(SandboxError, self.claim)
        self.assertIn(f"{self.layout.lock}: a symbolic link", str(error))
        self.assertEqual("", target.read_text())

    def test_what_is_ours(self):
        """New ones, those of commands that ended early or install beside us."""
        for names in (
            (),
            ("lock",),
            ("venv/.nova-perfvm-installed",),
            ("venv/.nova-perfvm-lock",),
        ):
            self.make(*names)
            self.claim()
            self.assertEqual(state.MARK, self.layout.lock.read_bytes(), names)
            self.make("logs/install.log")
            self.sandbox.wipe()
            self.assertFalse(self.directory.exists(), names)

    def test_another_command_at_work(self):
        with state.claim(self.layout):
            error = self.assertRaises(SandboxError, self.claim)

        self.assertIn("another nova-perfvm sandbox command", str(error))

    def test_a_directory_that_cannot_be_made(self):
        def refuse(*_args, **_kwargs):
            raise PermissionError(13, os.strerror(13), "/srv")

        self.useFixture(fixtures.MonkeyPatch("pathlib.Path.mkdir", refuse))

        error = self.assertRaises(SandboxError, self.claim)

        self.assertEqual("/srv: Permission denied", str(error))


class WipeTest(StateTest):
    """Nothing is installed or started; data are as good as their password."""

    def setUp(self):
        super().setUp()
        for name, double in (
            ("programs.find_programs", lambda: None),
            ("environment.Environment.prepare", self.prepare),
            ("starter.Starter.start_all", self.bring_up),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f"nova_perfvm.sandbox.processes.{name}", double)
            )

    @staticmethod
    def prepare(environment, _log, _tell, **_how):
        stamp = environment.directory / ".nova-perfvm-installed"
        paste = environment.etc / "nova" / "api-paste.ini"
        if not stamp.exists():
            paste.parent.mkdir(parents=True)
            paste.touch()
            stamp.touch()

    @staticmethod
    def bring_up(starter, *_arguments):
        database = starter.layout.data / "mariadb"
        password = starter.settings.password
        if not database.exists():
            database.mkdir()
            for number in range(3):
                (database / f"{number}").write_text(password)
        for number in range(3):
            assert (database / f"{number}").read_text() == password

    def test_interrupted_anywhere(self):
        self.sandbox.up()
        for step in range(100):
            left = Sandbox(self.directory.parent / "left")
            shutil.copytree(self.directory, left.layout.directory)
            if not self.interrupted(left, step):
                break
            for commands in ((Sandbox.down, Sandbox.wipe), (Sandbox.up, Sandbox.wipe)):
                sandbox = Sandbox(self.directory.parent / "again")
                shutil.copytree(left.layout.directory, sandbox.layout.directory)
                for command in commands:
                    command(sandbox)
                self.assertFalse(sandbox.layout.directory.exists(), step)
            shutil.rmtree(left.layout.directory)
        self.assertGreater(step, 5)

    def interrupted(self, sandbox, step):
        """Wipe, and interrupt it at a step; tell whether it came to that."""
        steps = iter(range(step))

        def interrupting(function):
            def call(*args, **kwargs):
                if next(steps, None) is None:
                    if function is remove:
                        # Half of each directory is gone.
                        for path in sorted(Path(args[0]).rglob("[02468]")):
                            unlink(path)
                    raise KeyboardInterrupt
                return function(*args, **kwargs)

            return call

        remove, unlink = shutil.rmtree, Path.unlink
        with contextlib.ExitStack() as stack:
            for owner, name in (
                (Path, "unlink"),
                (shutil, "rmtree"),
            ):
                double = interrupting(getattr(owner, name))
                stack.enter_context(mock.patch.object(owner, name, double))
            try:
                sandbox.wipe()
            except KeyboardInterrupt:
                return True
        return False

    def test_a_failure_says_what_to_do(self):
        self.sandbox.up()

        def refuse(path):
            raise OSError(16, "Device or resource busy", str(path))

        with mock.patch("shutil.rmtree", refuse):
            error = self.assertRaises(SandboxError, self.sandbox.wipe)

        self.assertIn(
            "Device or resource busy; remove the cause, and repeat", str(error)
        )
        self.sandbox.up()
        self.sandbox.wipe()
        self.assertFalse(self.directory.exists())
