# SPDX-License-Identifier: Apache-2.0

import json

from tests.unit.measure import test_disk
from tests.unit.osc.test_shell import CommandCase


def figures(name):
    alone = test_disk.ALONE[name]
    of_one = (alone.read_iops, alone.write_iops, alone.read_ms, alone.write_ms)
    arguments = ["--alone", ",".join(map(str, of_one))]
    for of_vm in zip(*test_disk.FIVE[name], strict=True):
        arguments += ["--contended", ",".join(map(str, of_vm))]
    return arguments


class PlanDiskTest(CommandCase):
    def plan(self, *arguments):
        self.status = self.run_command("plan", "disk", *arguments, "-f", "json")
        rows = json.loads(self.stdout)
        return {row["Count"]: row["VMs"] for row in rows}

    def test_figures(self):
        for name, counts, status in (
            ("NAS", (2, 5, 7), 0),
            ("SAS", (4, 5, 7), 0),
            ("SSD", (59, 5, 176), 0),
        ):
            found = self.plan(*figures(name), "--guarantee-read", "50")
            self.assertEqual((counts, status), (tuple(found.values()), self.status))
            self.assertIn("8.0 I/Os were outstanding", self.stderr)
        found = self.plan(*figures("NAS"), "--guarantee-write", "100")
        self.assertEqual(((0, 0, 1), 1), (tuple(found.values()), self.status))
        found = self.plan(*figures("NAS"), "--guarantee-write", "200")
        self.assertEqual(((0, 0, 0), 2), (tuple(found.values()), self.status))

    def test_fio(self):
        path = self.file(test_disk.fio())
        found = self.plan("--alone", path, "--guarantee-read", "5000")
        self.assertEqual(({"rule": 4}, 1), (found, self.status))
        self.assertIn("128.0 I/Os were outstanding", self.stderr)
        found = self.plan(
            *("--alone", path, "--contended", path, "--contended", path),
            *("--guarantee-read", "5000"),
        )
        self.assertEqual({"rule": 4, "demonstrated": 2, "extrapolated": 9}, found)

    def test_mistakes(self):
        path = self.file("{}")
        given = ("--alone", "100,50")
        odd = "neither a file that is there nor 2 to 4 numbers"
        for words, arguments in (
            ("nothing is guaranteed", given),
            ("jobs: missing", ("--alone", path, "--guarantee-read", "1")),
            (odd, ("--alone", "100,50,1,1,1")),
            (odd, (*given, "--contended", "1,x")),
            (odd, (*given, "--contended", "1,0")),
            (odd, (*given, "--contended", "a,b")),
            ("cannot read /nowhere", (*given, "--contended", "/nowhere")),
            ("cannot read 1", (*given, "--contended", "1")),
            ("arguments are required: --alone", ()),
        ):
            with self.subTest(words):
                self.assert_refused(3, words, "plan", "disk", *arguments)

    def test_one_vm(self):
        self.run_command(
            *("plan", "disk", "--alone", "100,50"),
            *("--contended", "90,40", "--guarantee-read", "95", "-f", "value"),
        )
        self.assertIn("broken with 1 VM: reads 90 of 95", self.stdout)
        self.assertNotIn("1 VMs", self.stdout)
