# SPDX-License-Identifier: Apache-2.0

import contextlib
import io
import os
import shutil
import subprocess
from pathlib import Path

import fixtures
import testtools

from tests.processes import settings as kept_settings
from tests.processes import state
from tests.processes.layout import Layout
from tests.sandbox.__main__ import main

# As somebody would have who has just sourced the openrc of another cloud.
PRODUCTION = {
    "OS_AUTH_URL": "https://keystone.example/v3",
    "OS_USERNAME": "admin",
    "OS_PASSWORD": "two\nOS_lines=1",
    "OS_PROJECT_DOMAIN_NAME": "it's",
    "OS_COMPUTE_API_VERSION": "2.1",
    "OS_CLOUD": "production",
    "OS_CLIENT_SECURE_FILE": "/etc/openstack/secure.yaml",
}


class CommandCase(testtools.TestCase):
    """A command in this process, in a directory of its own."""

    def setUp(self):
        super().setUp()
        self.directory = Path(self.useFixture(fixtures.TempDir()).path)

    def run_command(self, *arguments):
        """Run a command; return its exit status, and keep what it has printed."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(list(arguments))
        self.stdout, self.stderr = out.getvalue(), err.getvalue()
        return status

    def assert_refused(self, words, *arguments):
        self.assertEqual(1, self.run_command(*arguments), self.stdout)
        self.assertIn(words, self.stderr)
        self.assertEqual("", self.stdout)


class OpenRCTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.directory /= "a 'state'"
        layout = Layout(self.directory)
        settings = kept_settings.new_settings("dedicated:2x20", "0")
        with state.claim(layout):
            kept_settings.save(settings, layout.settings)

    def shells(self):
        """Return the shells that are here."""
        found = [name for name in ("sh", "bash", "dash", "zsh") if shutil.which(name)]
        self.assertIn("sh", found)
        return found

    def variables(self, shell, environment):
        """Return the environment of a command after openrc in a strict shell."""
        self.assertEqual(
            0, self.run_command("openrc", "--directory", str(self.directory))
        )
        result = subprocess.run(
            [shell, "-c", f"set -eu; {self.stdout}env -0"],
            check=False,
            capture_output=True,
            encoding="utf-8",
            env=environment,
        )
        self.assertEqual((0, ""), (result.returncode, result.stderr), shell)
        return dict(line.split("=", 1) for line in result.stdout.split("\0") if line)

    def test_the_client_knows_no_other_cloud(self):
        for shell in self.shells():
            for others in ({}, PRODUCTION):
                given = {"PATH": os.environ["PATH"], "HOME": "/", **others}
                found = self.variables(shell, given)
                self.assertEqual(
                    {
                        "OS_CLOUD": "perfvm",
                        "OS_CLIENT_CONFIG_FILE": f"{self.directory}/clouds.yaml",
                    },
                    {k: v for k, v in found.items() if k.startswith("OS_")},
                )
                self.assertEqual(
                    f"{self.directory}/venv/bin:{given['PATH']}", found["PATH"]
                )

    def test_without_a_sandbox_nothing_is_printed(self):
        """The shell that evaluates it keeps its variables."""
        nowhere = str(self.directory.parent)
        self.assert_refused("no sandbox", "openrc", "--directory", nowhere)


class NobodyTest(CommandCase):
    """A user without a home directory, as in many containers."""

    def setUp(self):
        super().setUp()
        for name in ("HOME", "XDG_CACHE_HOME"):
            self.useFixture(fixtures.EnvironmentVariable(name))
        self.useFixture(fixtures.MonkeyPatch("os.getuid", lambda: 4294967290))

    def test_it_is_asked_for_a_directory(self):
        for command in ("up", "status", "down", "wipe", "openrc"):
            self.assert_refused("home directory", command)


class StatusTest(CommandCase):
    def test_there_is_none_or_it_is_down(self):
        directory = str(self.directory / "state")
        command = ("status", "--directory", directory)
        self.assert_refused(
            f"there is no sandbox in {directory}: start one with", *command
        )
        layout = Layout(Path(directory))
        settings = kept_settings.new_settings("dedicated:2x20", "0")
        with state.claim(layout):
            kept_settings.save(settings, layout.settings)
        self.assertEqual(0, self.run_command(*command))
