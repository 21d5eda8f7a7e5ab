# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import subprocess

import fixtures
import yaml

from nova_perfvm.generate.hosts import deployers, lscpu, rendering, sysfs
from nova_perfvm.measure.collected import Collected
from tests.unit.measure import hosts
from tests.unit.osc.test_shell import CommandCase

DEDICATED = ("host", "config", "--mode", "dedicated")
MINE = (*DEDICATED, "--topology", "2x20", "--memory-gb", "500")


class HostConfigTest(CommandCase):
    def directory(self):
        return pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def test_ini_is_the_default(self):
        self.assertEqual(0, self.run_command(*MINE))
        self.assertIn("\ncpu_dedicated_set = 0-39\n", self.stdout)
        self.assertIn("warning: no core is left for the host", self.stderr)

    def test_data(self):
        for name, parse in (("json", json.loads), ("yaml", yaml.safe_load)):
            self.assertEqual(0, self.run_command(*MINE, "-f", name))
            found = parse(self.stdout)
            self.assertEqual(2, found["host"]["slots"])
            self.assertEqual("0-39", found["nova_conf"]["compute"]["cpu_dedicated_set"])

    def test_local(self):
        root = self.directory()
        for path, text in (
            ("cpu/online", "0"),
            ("cpu/cpu0/topology/thread_siblings_list", "0"),
            ("node/node0/cpulist", "0"),
            ("node/node0/meminfo", "Node 0 MemTotal: 16777216 kB"),
        ):
            target = root / "devices/system" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        read = sysfs.read_sysfs
        self.useFixture(
            fixtures.MonkeyPatch(
                "nova_perfvm.generate.hosts.sysfs.read_sysfs", lambda: read(root)
            )
        )
        self.assertEqual(
            0, self.run_command("host", "config", "--local", "--mode", "shared")
        )
        self.assertIn("cpu_shared_set = 0\n", self.stdout)

    def test_this_machine_in_every_way(self):
        """--local and lscpu tell the same, where there is lscpu."""
        command = ["lscpu", "-J", "-e"]
        try:
            text = subprocess.run(
                command, capture_output=True, check=True, text=True
            ).stdout
            local = sysfs.read_sysfs()
        except (OSError, subprocess.CalledProcessError, ValueError) as exc:
            self.skipTest(str(exc))
        found = lscpu.parse_lscpu(text, "lscpu")
        self.assertEqual(
            [node.cores for node in local.nodes], [node.cores for node in found.nodes]
        )

    def test_collected_file(self):
        """The nodes are as large as they are, and one has no memory."""
        files = hosts.topology(cores=20)
        for number, slots in ((None, 2), (1, 1)):
            if number is not None:
                path = f"/sys/devices/system/node/node{number}/meminfo"
                files[path] = f"Node {number} MemTotal: 0 kB\n"
            found = Collected("host", "hp1", hosts.host().taken_at, 0.0, files)
            path = self.file(hosts.as_json(found))
            code = self.run_command(*DEDICATED, "--topology", path, "-f", "json")
            self.assertEqual(0, code, self.stderr)
            self.assertEqual(slots, json.loads(self.stdout)["host"]["slots"])

    def test_topology_file(self):
        rows = [{"cpu": cpu, "node": cpu // 20, "core": cpu} for cpu in range(40)]
        path = self.file(json.dumps({"cpus": rows}))
        self.assertEqual(0, self.run_command(*DEDICATED, "--topology", path))
        self.assertIn("cpu_dedicated_set = 0-39", self.stdout)

    def test_servers(self):
        path = self.file('[{"name": "web", "flavor": {"extra_specs": {}}}]')
        self.assert_refused(1, "'web'", *MINE, "--servers", path)
        self.assertEqual(0, self.run_command(*MINE, "--servers", self.file("[]")))
        self.assertNotIn("drain", self.stdout)

    def test_policy_file(self):
        text = 'schema_version: "1.0"\nplacement: units\n'
        arguments = ("--topology", "2x20", "--policy", self.file(text))
        self.assertEqual(
            0, self.run_command("host", "config", "--mode", "elastic", *arguments)
        )
        self.assertIn("policy_file = /etc/nova/perfvm.yaml", self.stdout)
        self.assertIn("disable_fallback_pcpu_query = False", self.stdout)
        self.assertIn("host enroll", self.stdout)

    def test_output_dir(self):
        path = self.directory() / "host1"
        arguments = (*MINE, "--output-dir", str(path))
        self.assertEqual(0, self.run_command(*arguments))
        self.assertEqual([str(path / name) for name in rendering.FILES], self.lines())
        self.assertEqual(set(rendering.FILES), {p.name for p in path.iterdir()})
        self.assert_refused(1, "--force", *arguments)
        self.assertEqual(0, self.run_command(*arguments, "--force"))

    def test_formats_of_tools(self):
        for tool, path in (
            ("kolla", "/etc/kolla/config/nova/HOST/nova.conf"),
            ("osa", "/etc/openstack_deploy/host_vars/HOST.yml"),
            ("plain", "/etc/nova/nova.conf.d/50-perfvm-compute.conf"),
            ("helm", "placement.yaml"),
            ("rhoso", "nova-extra-config.yaml"),
        ):
            self.assertEqual(0, self.run_command(*MINE, "-f", tool), self.stderr)
            self.assertIn(f"# ==> {path}", self.lines())

    def test_files_of_tools(self):
        root = self.directory()
        for tool, known in deployers.KNOWN.items():
            path = root / tool
            arguments = (*MINE, "-f", tool, "--output-dir", str(path))
            self.assertEqual(0, self.run_command(*arguments), self.stderr)
            below = [str(path / name.lstrip("/")) for name in known]
            self.assertEqual(below, self.lines())
            found = {str(p) for p in path.rglob("*") if p.is_file()}
            self.assertEqual(set(below), found)
            self.assert_refused(1, "--force", *arguments)
            self.assertEqual(0, self.run_command(*arguments, "--force"))

    def test_a_shared_host_keeps_no_provider_yaml(self):
        path = self.directory()
        shared = ("host", "config", "--mode", "shared", *MINE[4:])
        for arguments in (MINE, (*shared, "--force")):
            files = (*arguments, "-f", "plain", "--output-dir", str(path))
            self.assertEqual(0, self.run_command(*files), self.stderr)
        names = [p.name for p in path.rglob("*.*") if p.is_file()]
        self.assertNotIn("perfvm.yaml", names)
        self.assertIn("50-perfvm-compute.conf", names)

    def lines(self):
        return self.stdout.splitlines()

    def test_a_host_for_a_class_that_does_not_fit_it(self):
        small = ("--topology", "4x10", "--memory-gb", "256")
        self.assert_refused(1, "this host has 0 slots", *DEDICATED, *small)
        shared = ("host", "config", "--mode", "shared")
        self.assertEqual(0, self.run_command(*shared, *small))

    def test_refused(self):
        for status, words, arguments in (
            (2, "required", DEDICATED),
            (2, "--mode", ("host", "config", "--topology", "2x20")),
            (2, "not allowed with", (*MINE, "--local")),
            (2, "--mode", ("host", "config", "--local", "--mode", "fast")),
            (1, "no file of that name", (*DEDICATED, "--topology", "2x")),
            (1, "no file of that name", (*DEDICATED, "--topology", "x" * 5000)),
            (1, "no file of that name", (*DEDICATED, "--topology", "a\0b")),
            (1, "cannot read", (*DEDICATED, "--topology", "/")),
            (1, "cannot read", (*MINE, "--servers", "/nonexistent")),
            (1, "--memory-gb 0", (*DEDICATED, "--local", "--memory-gb", "0")),
            (1, "leave --format out", (*MINE, "--output-dir", "/x", "-f", "json")),
            (1, "cannot write", (*MINE, "--output-dir", "/dev/null/x")),
            (1, "--force is for", (*MINE, "--force")),
            (1, "exclusive: cell", (*MINE[:3], "mixed", *MINE[4:])),
            (1, "0 to 19", (*MINE, "--reserve", "20")),
            (2, "--reserve", (*MINE, "--reserve", "x")),
            (2, "--servers: an empty path", (*MINE, "--servers", "")),
        ):
            with self.subTest(arguments):
                self.assert_refused(status, words, *arguments)
