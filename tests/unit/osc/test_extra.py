# SPDX-License-Identifier: Apache-2.0
"""Commands where an extra is not installed."""

import pathlib
import subprocess
import sys

import fixtures
import testtools

from tests.unit.measure import hosts
from tests.unit.measure.certify import sound

MAIN = (
    "import sys; sys.modules[sys.argv.pop(1)] = None; "
    "from nova_perfvm.osc.shell import main; sys.exit(main(sys.argv[1:]))"
)


class ExtraTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        case = sound.Case()
        directory = self.useFixture(fixtures.TempDir()).path
        self.files = {}
        for name, text in (
            ("guest", hosts.as_json(case.guests[0])),
            ("host", hosts.as_json(case.host)),
            ("samples", case._samples()),
        ):
            path = pathlib.Path(directory) / f"{name}.json"
            path.write_text(text)
            self.files[name] = str(path)

    def run_without(self, module, *arguments):
        """Run nova-perfvm as it is where a module is not installed."""
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", MAIN, module, *arguments],
            check=False,
            capture_output=True,
            text=True,
        )

    def test_what_to_install_is_said(self):
        hosts = ("--collected", self.files["host"])
        for module, command in (
            ("jc", ("guest", "check", self.files["guest"])),
            ("jc", ("host", "check", self.files["host"])),
            ("scipy", ("bench", "compare", self.files["samples"])),
            ("jinja2", ("survey", *hosts, "-f", "html")),
        ):
            done = self.run_without(module, *command)
            self.assertEqual(3, done.returncode, done.stderr)
            self.assertIn("pip install nova-perfvm[measure,pages]", done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_other_commands_do_without(self):
        for module in ("jc", "jinja2"):
            done = self.run_without(module, "policy", "show")
            self.assertEqual(0, done.returncode, done.stderr)
