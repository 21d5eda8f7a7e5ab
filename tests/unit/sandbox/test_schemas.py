# SPDX-License-Identifier: Apache-2.0
"""Tables that are kept; tests/sandbox has them made and read by MariaDB."""

from pathlib import Path

import fixtures
import testtools

from nova_perfvm.sandbox.processes import programs, running
from nova_perfvm.sandbox.processes.databases import Schemas
from nova_perfvm.sandbox.processes.errors import SandboxError

_DUMP = """#!/bin/sh
for argument; do
    case $argument in --result-file=*) echo tables >"${argument#*=}";; esac
done
"""


class SchemasTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = Path(self.useFixture(fixtures.TempDir()).path)
        self.kept = self.directory / "kept"
        self.made = 0
        for name in programs.PACKAGES:
            self.write(name, "#!/bin/sh\n")
        self.write("mariadb-dump", _DUMP)
        self.write("mariadb", f'#!/bin/sh\necho "$@" >>{self.directory}/imports\n')

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o755)

    def fill(self):
        found = programs.find_programs(directories=[str(self.directory)])
        schemas = Schemas(self.kept, found, self.directory / "socket")
        schemas.fill("glance", self.make)

    def make(self):
        self.made += 1

    def test_made_once_and_then_read(self):
        self.fill()
        self.assertEqual(["glance.sql"], [path.name for path in self.kept.iterdir()])
        self.assertFalse((self.directory / "imports").exists())

        self.fill()

        self.assertEqual(1, self.made)
        imported = (self.directory / "imports").read_text()
        self.assertIn(f"glance -e source {self.kept}/glance.sql", imported)
        self.assertIn(f"--socket={self.directory}/socket", imported)

    def test_nothing_is_kept_of_what_failed(self):
        self.write("mariadb-dump", _DUMP + "exit 1\n")
        self.assertRaises(SandboxError, self.fill)
        self.assertFalse((self.kept / "glance.sql").exists())

        self.make = lambda: running.run(["false"])
        self.assertRaises(SandboxError, self.fill)
        self.assertFalse((self.kept / "glance.sql").exists())
