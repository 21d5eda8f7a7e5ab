# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import fixtures
import testtools

from tests.processes import programs
from tests.processes.errors import SandboxError


class ProgramsTest(testtools.TestCase):
    def test_missing_ones_are_named_with_the_command_that_installs_them(self):
        """A file that cannot be run is one."""
        directory = Path(self.useFixture(fixtures.TempDir()).path)
        for name in programs.PROGRAMS[1:]:
            (directory / name).touch(mode=0o755)
        (directory / "memcached").chmod(0o644)

        error = self.assertRaises(
            SandboxError, programs.find_programs, path=str(directory)
        )

        self.assertIn("not installed: mariadbd, memcached; on Debian", str(error))
        self.assertIn(f"--no-install-recommends {programs.PACKAGES}", str(error))
        for name in ("mariadbd", "memcached"):
            (directory / name).touch()
            (directory / name).chmod(0o755)
        found = programs.find_programs(path=str(directory))
        self.assertEqual(str(directory / "mariadb-dump"), found["mariadb-dump"])

    def test_bindep_has_every_package(self):
        text = (Path(__file__).parents[3] / "bindep.txt").read_text()
        listed = {line.split()[0] for line in text.splitlines() if line[:1].isalpha()}
        self.assertEqual(set(), set(programs.PACKAGES.split()) - listed)
