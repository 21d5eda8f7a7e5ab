# SPDX-License-Identifier: Apache-2.0

import json
import os
import pathlib

from nova_perfvm.measure.collect import collector, reading
from nova_perfvm.printable import number_of
from tests.unit.osc.base import CommandCase


class CollectTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, pathlib.Path.cwd())
        os.chdir(self.directory)

    def test_a_new_file_here(self):
        for kind in ("host", "guest"):
            arguments = (kind, "collect", "--interval", "0.01")
            self.assertEqual(0, self.run_command(*arguments), self.stderr)
            (path,) = self.directory.glob(f"perfvm-{kind}-*Z.json")
            found = reading.read(str(path), kind)
            self.assertGreater(found.interval_s, 0)
            self.assertEqual(
                f"{path.name}: {number_of(len(found.files), 'file')}, "
                f"{number_of(len(found.commands), 'command')}; "
                f"{len(found.unread)} not read\n",
                self.stdout,
            )

    def test_output(self):
        arguments = ("guest", "collect", "--interval", "0", "--output")
        self.assertEqual(0, self.run_command(*arguments, "vm1.json"))
        self.assertEqual("guest", reading.read("vm1.json").kind)
        # Command lines and names of others are in it.
        path = self.directory / "vm1.json"
        self.assertEqual(0o600, path.stat().st_mode & 0o777)
        self.assertEqual(0, self.run_command(*arguments, "-"))
        self.assertEqual("guest", json.loads(self.stdout)["kind"])
        self.assert_refused(
            1, "cannot write none/vm1.json", *arguments, "none/vm1.json"
        )
        for name in ("", "vm1.tar.gz", "vm1.zip"):
            self.assert_refused(2, f"{name!r}: expected the name", *arguments, name)
        self.assertEqual([path], [*self.directory.iterdir()])

    def test_script(self):
        self.assertEqual(0, self.run_command("guest", "collect", "--script"))
        source = pathlib.Path(collector.__file__).read_text("utf-8")
        self.assertEqual(source, self.stdout)
        self.assertEqual([], [*self.directory.iterdir()])

    def test_wrong_use(self):
        self.assert_refused(
            2, "expected seconds from 0", "host", "collect", "--interval", "x"
        )
        arguments = ("host", "collect", "--script", "--output", "x")
        self.assert_refused(2, "not allowed with", *arguments)
