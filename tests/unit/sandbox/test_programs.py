# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import fixtures
import testtools

from nova_perfvm.sandbox.processes import programs


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
        return programs.find_programs(directories=[str(self.directory)])

    def test_all_there(self):
        self.install(*programs.PACKAGES)

        found = self.find()

        expected = str(self.directory / "mariadb-install-db")
        self.assertEqual(expected, found["mariadb-install-db"])

    def test_missing_ones_are_named_with_the_command_that_installs_them(self):
        self.install(*(set(programs.PACKAGES) - {"mariadbd", "epmd"}))

        error = self.assertRaises(programs.MissingProgramsError, self.find)

        self.assertEqual(("mariadbd", "epmd"), error.missing)
        self.assertIn("not installed: mariadbd, epmd", str(error))
        self.assertIn(
            "apt-get install -y --no-install-recommends mariadb-server erlang-base",
            str(error),
        )

    def test_each_package_is_named_once(self):
        error = self.assertRaises(programs.MissingProgramsError, self.find)

        self.assertEqual(len(set(error.packages)), len(error.packages))

    def test_file_that_cannot_be_run_is_missing(self):
        self.install(*programs.PACKAGES)
        (self.directory / "memcached").chmod(0o644)

        error = self.assertRaises(programs.MissingProgramsError, self.find)

        self.assertEqual(("memcached",), error.missing)

    def test_bindep_has_every_package(self):
        """mariadb-server and rabbitmq-server bring the others along."""
        text = (Path(__file__).parents[3] / "bindep.txt").read_text()
        listed = {line.split()[0] for line in text.splitlines() if line[:1].isalpha()}
        wanted = set(programs.PACKAGES.values()) - {"mariadb-client", "erlang-base"}
        self.assertEqual(set(), (wanted | {"gcc", "python3-dev"}) - listed)

    def test_compiler_and_headers(self):
        self.useFixture(fixtures.EnvironmentVariable("PATH", str(self.directory)))
        self.useFixture(
            fixtures.MonkeyPatch("sysconfig.get_path", lambda _: str(self.directory))
        )

        error = self.assertRaises(
            programs.MissingProgramsError, programs.check_compiler
        )

        self.assertEqual(("gcc", "python3-dev"), error.packages)
