# SPDX-License-Identifier: Apache-2.0
"""Commands where an extra is not installed."""

import subprocess
import sys

from tests.directory import DirectoryCase
from tests.unit.measure.prove import sound

MAIN = (
    "import sys; sys.modules[sys.argv.pop(1)] = None; "
    "from nova_perfvm.osc.shell import main; sys.exit(main(sys.argv[1:]))"
)


class ExtraTest(DirectoryCase):
    def setUp(self):
        super().setUp()
        sound.Case().write(self.directory)

    def run_without(self, module, *arguments):
        """Run nova-perfvm as it is where a module is not installed."""
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-c", MAIN, module, *arguments],
            check=False,
            capture_output=True,
            text=True,
        )

    def test_what_to_install_is_said(self):
        hosts = ("--collected", str(self.directory / "host.json"))
        measured = str(self.directory / "samples.json")
        for module, extra, command in (
            ("scipy", "measure", ("bench", "compare", measured)),
            ("jinja2", "pages", ("survey", *hosts, "-f", "html")),
        ):
            done = self.run_without(module, *command)
            self.assertEqual(3, done.returncode, done.stderr)
            self.assertIn(f"pip install 'CHECKOUT[{extra}]'", done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_other_commands_do_without(self):
        for command in (
            ("policy", "show"),
            ("guest", "check", str(self.directory / "guest1.json")),
        ):
            done = self.run_without("jinja2", *command)
            self.assertEqual(0, done.returncode, done.stderr)
