# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import fixtures
import testtools

from nova_perfvm.sandbox.processes import programs
from nova_perfvm.sandbox.processes.errors import SandboxError


class ProgramsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = Path(self.useFixture(fixtures.TempDir()).path)

    def install(self, *names):
        for name in names:
            path = self.directory / name
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)

    def find(self):
        return programs.find_programs(path=str(self.directory))

    def test_all_there(self):
        self.install(*programs.PACKAGES)

        expected = str(self.directory / "mariadb-install-db")
        self.assertEqual(expected, self.find()["mariadb-install-db"])

    def test_missing_ones_are_named_with_the_command_that_installs_them(self):
        """Each package once, for a file that cannot be run, too."""
        self.install(*(set(programs.PACKAGES) - {"mariadbd", "mariadb-install-db"}))
        (self.directory / "memcached").chmod(0o644)

        error = self.assertRaises(SandboxError, self.find)

        self.assertIn(
            "not installed: mariadbd, mariadb-install-db, memcached", str(error)
        )
        self.assertIn(
            "apt-get install -y --no-install-recommends mariadb-server memcached",
            str(error),
        )

    def test_bindep_has_every_package(self):
        """mariadb-server brings the client along."""
        text = (Path(__file__).parents[3] / "bindep.txt").read_text()
        listed = {line.split()[0] for line in text.splitlines() if line[:1].isalpha()}
        wanted = set(programs.PACKAGES.values()) - {"mariadb-client"}
        self.assertEqual(set(), (wanted | {"gcc", "python3-dev"}) - listed)

    def test_compiler_and_headers(self):
        self.useFixture(fixtures.EnvironmentVariable("PATH", str(self.directory)))
        self.useFixture(
            fixtures.MonkeyPatch("sysconfig.get_path", lambda _: str(self.directory))
        )

        error = self.assertRaises(SandboxError, programs.check_compiler)

        self.assertIn("--no-install-recommends gcc python3-dev", str(error))
