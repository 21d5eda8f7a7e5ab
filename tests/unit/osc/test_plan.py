# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
import subprocess

import fixtures
import yaml

from nova_perfvm.policy import loader
from tests.unit.measure import test_disk
from tests.unit.osc.test_shell import CommandCase


def figures(name):
    alone = test_disk.ALONE[name]
    arguments = [
        *("--read-iops", str(alone.read_iops), "--write-iops", str(alone.write_iops)),
        *("--latency-ms", f"{alone.read_ms},{alone.write_ms}"),
    ]
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
        found = self.plan("--fio", path, "--guarantee-read", "5000")
        self.assertEqual(({"rule": 4}, 1), (found, self.status))
        self.assertIn("128.0 I/Os were outstanding", self.stderr)
        found = self.plan(
            *("--fio", path, "--contended", path, "--contended", path),
            *("--guarantee-read", "5000"),
        )
        self.assertEqual({"rule": 4, "demonstrated": 2, "extrapolated": 9}, found)

    def written(self, *arguments):
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "out"
        self.plan(
            *figures("SSD"),
            *("--guarantee-read", "50", "--guarantee-write", "100"),
            *("--output-dir", str(root), *arguments),
        )
        return root

    def run_commands(self, path, environment):
        """Return what openstack would be called with, one line a command."""
        root = self.useFixture(fixtures.TempDir()).path
        double = pathlib.Path(root) / "openstack"
        double.write_text('#!/bin/sh\necho "$@"\n')
        double.chmod(0o755)
        return subprocess.run(
            ["sh", str(path)],
            env={"PATH": f"{root}:/usr/bin:/bin"} | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def test_files_for_local_disks(self):
        root = self.written()
        document = yaml.safe_load((root / "provider.yaml").read_text())
        (provider,) = document["providers"]
        inventories = provider["inventories"]["additional"]
        self.assertEqual(
            {"CUSTOM_PERFVM_READ_IOPS": 8845, "CUSTOM_PERFVM_WRITE_IOPS": 3789},
            {name: of["total"] for each in inventories for name, of in each.items()},
        )
        keys = yaml.safe_load((root / "policy.yaml").read_text())
        self.assertEqual({"disk": {"read_iops": 50, "write_iops": 100}}, keys)
        # The policy takes them.
        policy = loader.load(
            None,
            [
                f"classes.high-performance.disk.{key}={value}"
                for key, value in keys["disk"].items()
            ],
        )
        disk = policy.get_class("high-performance").disk
        self.assertEqual((50, 100), (disk.read_iops, disk.write_iops))
        done = self.run_commands(root / "commands.sh", {"FLAVOR": "hp.20c.64g"})
        self.assertEqual(
            "flavor set --property resources:CUSTOM_PERFVM_READ_IOPS=50 "
            "--property resources:CUSTOM_PERFVM_WRITE_IOPS=100 "
            "--property quota:disk_read_iops_sec=50 "
            "--property quota:disk_write_iops_sec=100 hp.20c.64g\n",
            done.stdout,
        )
        done = self.run_commands(root / "commands.sh", {})
        self.assertNotEqual(0, done.returncode)
        self.assertIn("name of the flavor", done.stderr)

    def test_files_for_network_volumes(self):
        root = self.written("--network-volume", "nvme-tcp")
        text = (root / "commands.sh").read_text()
        self.assertIn("Nobody counts the array", text)
        done = self.run_commands(root / "commands.sh", {"FLAVOR": "hp.20c.64g"})
        self.assertEqual(
            [
                (
                    "flavor set --property resources:CUSTOM_PERFVM_READ_IOPS=50 "
                    "--property resources:CUSTOM_PERFVM_WRITE_IOPS=100 hp.20c.64g"
                ),
                "volume type create nvme-tcp",
                (
                    "volume qos create --consumer front-end "
                    "--property read_iops_sec=50 "
                    "--property write_iops_sec=100 perfvm-nvme-tcp"
                ),
                "volume qos associate perfvm-nvme-tcp nvme-tcp",
            ],
            done.stdout.splitlines(),
        )

    def test_nothing_is_overwritten(self):
        root = self.written()
        again = (
            *("plan", "disk", *figures("SSD"), "--guarantee-read", "50"),
            *("--output-dir", str(root)),
        )
        self.assert_refused(3, "use --force", *again)
        self.assertEqual(0, self.run_command(*again, "--force"))

    def test_mistakes(self):
        path = self.file("{}")
        given = ("--read-iops", "100", "--write-iops", "50")
        for words, arguments in (
            ("nothing is guaranteed", given),
            ("give --write-iops, too", ("--read-iops", "1", "--guarantee-read", "1")),
            ("jobs: missing", ("--fio", path, "--guarantee-read", "1")),
            ("leave --write-iops", ("--fio", path, "--write-iops", "1")),
            ("expected 2 numbers", (*given, "--latency-ms", "1")),
            ("expected a number above 0", (*given, "--contended", "1,x")),
            ("expected 2 to 4 numbers", (*given, "--contended", "1")),
            ("cannot read /nowhere", (*given, "--contended", "/nowhere")),
            (
                "--contended a,b: neither a file that is there nor figures",
                (*given, "--contended", "a,b"),
            ),
            (
                f"cannot write to {path}: File exists",
                (*given, "--guarantee-read", "1", "--output-dir", path),
            ),
            ("are for --output-dir", (*given, "--force")),
        ):
            with self.subTest(words):
                self.assert_refused(3, words, "plan", "disk", *arguments)
        self.assertEqual(3, self.run_command("plan", "disk"))

    def test_one_vm(self):
        self.run_command(
            *("plan", "disk", "--read-iops", "100", "--write-iops", "50"),
            *("--contended", "90,40", "--guarantee-read", "95", "-f", "value"),
        )
        self.assertIn("broken with 1 VM: reads 90 of 95", self.stdout)
        self.assertNotIn("1 VMs", self.stdout)
