# SPDX-License-Identifier: Apache-2.0
"""Tables that are kept; tests/sandbox has them made and read by MariaDB."""

from tests.directory import DirectoryCase
from tests.processes import ports, programs
from tests.processes.databases import Databases
from tests.processes.environment import Environment
from tests.processes.errors import SandboxError
from tests.processes.layout import Layout
from tests.processes.settings import SandboxSettings

_DUMP = """#!/bin/sh
for argument; do
    case $argument in --result-file=*) echo tables >"${argument#*=}";; esac
done
"""


class SchemasTest(DirectoryCase):
    def setUp(self):
        super().setUp()
        for name in programs.PROGRAMS:
            self.write(name, "#!/bin/sh\n")
        self.write("mariadb-dump", _DUMP)
        for name in ("mariadb", "bin/glance-manage"):
            self.write(
                name, f'#!/bin/sh\necho "$@" >>{self.directory}/ran-$(basename $0)'
            )
        settings = SandboxSettings(
            "dedicated:2x20", "0", dict.fromkeys(ports.NAMES, 1), "secret"
        )
        environment = Environment(self.directory)
        self.kept = environment.schemas / "glance.sql"
        layout = Layout(self.directory / "state")
        layout.logs.mkdir(parents=True)
        found = programs.find_programs(path=str(self.directory))
        databases = Databases(layout, settings, environment, found, {})
        self.fill = lambda: databases.fill("glance")

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def ran(self, program):
        path = self.directory / f"ran-{program}"
        return path.read_text().splitlines() if path.exists() else []

    def test_made_once_and_then_read(self):
        self.fill()
        self.assertEqual([self.kept], list(self.kept.parent.iterdir()))
        self.assertEqual([], self.ran("mariadb"))

        self.fill()

        self.assertEqual(1, len(self.ran("glance-manage")))
        (imported,) = self.ran("mariadb")
        self.assertIn(f"glance -e source {self.kept}", imported)
        self.assertIn(f"--socket={self.directory}/state/data/mariadb/socket", imported)

    def test_nothing_is_kept_of_what_failed(self):
        for name in ("mariadb-dump", "bin/glance-manage"):
            self.write(name, f"{_DUMP}exit 1\n")
            self.assertRaises(SandboxError, self.fill)
            self.assertFalse(self.kept.exists(), name)
