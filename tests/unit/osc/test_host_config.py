# SPDX-License-Identifier: Apache-2.0
import json
import subprocess

from nova_perfvm.generate.hosts import deployers, rendering
from nova_perfvm.measure.collect.collected import Collected
from tests.unit.measure import hosts
from tests.unit.osc.base import CommandCase

DEDICATED = ("host", "config", "--mode", "dedicated")
MINE = (*DEDICATED, "--topology", "2x20", "--memory-gb", "500")


class HostConfigTest(CommandCase):
    def test_ini_is_the_default(self):
        self.assertEqual(0, self.run_command(*MINE))
        for line in ("cpu_dedicated_set = 0-39", "disable_fallback_pcpu_query = True"):
            self.assertIn(f"\n{line}\n", self.stdout)
        self.assertIn("warning: drain the host first", self.stderr)

    def test_data(self):
        self.assertEqual(0, self.run_command(*MINE, "-f", "json"))
        found = json.loads(self.stdout)
        self.assertEqual(2, found["host"]["slots"])
        self.assertEqual("0-39", found["nova_conf"]["compute"]["cpu_dedicated_set"])

    def test_topology_files(self):
        rows = [{"cpu": cpu, "node": cpu // 20, "core": cpu} for cpu in range(40)]
        path = self.file(json.dumps({"cpus": rows}))
        self.assertEqual(0, self.run_command(*DEDICATED, "--topology", path))
        self.assertIn("cpu_dedicated_set = 0-39", self.stdout)
        command = ["lscpu", "-J", "-e"]
        try:
            own = subprocess.run(command, capture_output=True, check=True, text=True)
        except (OSError, subprocess.CalledProcessError) as exc:
            self.skipTest(str(exc))
        shared = ("host", "config", "--mode", "shared", "--topology")
        code = self.run_command(*shared, self.file(own.stdout))
        self.assertEqual(0, code, self.stderr)
        self.assertIn("cpu_shared_set = 0", self.stdout)

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
        for form, known in ((None, rendering.FILES), *deployers.TOOLS.items()):
            path = self.directory / str(form)
            arguments = (*MINE, *(("-f", form) if form else ()))
            self.assertEqual(0, self.run_command(*arguments), self.stderr)
            for name in known:
                self.assertIn(f"# ==> {name}\n", self.stdout)
            arguments = (*arguments, "--output-dir", str(path))
            self.assertEqual(0, self.run_command(*arguments), self.stderr)
            below = [str(path / name.lstrip("/")) for name in known]
            self.assertEqual(below, self.stdout.splitlines())
            found = {str(p) for p in path.rglob("*") if p.is_file()}
            self.assertEqual(set(below), found)
            self.assert_refused(1, "--force", *arguments)
            self.assertEqual(0, self.run_command(*arguments, "--force"))

    def test_a_shared_host_keeps_no_provider_yaml(self):
        path = self.directory
        shared = ("host", "config", "--mode", "shared", *MINE[4:])
        for arguments in (MINE, (*shared, "--force")):
            files = (*arguments, "-f", "plain", "--output-dir", str(path))
            self.assertEqual(0, self.run_command(*files), self.stderr)
        names = [p.name for p in path.rglob("*.*") if p.is_file()]
        self.assertNotIn("perfvm.yaml", names)
        self.assertIn("50-perfvm-compute.conf", names)

    def test_a_host_for_a_class_that_does_not_fit_it(self):
        small = ("--topology", "4x10", "--memory-gb", "256")
        self.assert_refused(1, "this host has 0 slots", *DEDICATED, *small)
        threads = ("--topology", "2x10x2", "--memory-gb", "500")
        self.assert_refused(1, "smt: threads of class", *DEDICATED, *threads)
        # Its cores are enough, and its memory is not.
        for shape in ("2x20", "2x20x2"):
            little = ("--topology", shape, "--memory-gb", "128")
            self.assert_refused(1, "have 20, 20 CPUs and 60, 60", *DEDICATED, *little)
            self.assertNotIn("smt: threads", self.stderr)
        shared = ("host", "config", "--mode", "shared")
        self.assertEqual(0, self.run_command(*shared, *small))

    def test_a_flavor_that_never_fits_the_host(self):
        for memory, words in (
            ("250", "never fits a VM of hp.20c.128g or hp.20c.200g"),
            ("500", ""),
        ):
            arguments = (*DEDICATED, "--topology", "2x20", "--memory-gb", memory)
            self.assertEqual(0, self.run_command(*arguments), self.stderr)
            said = [line for line in self.stdout.splitlines() if "never fits" in line]
            self.assertEqual(bool(words), bool(said))
            self.assertTrue(all(words in line for line in said), said)

    def test_refused(self):
        for status, words, arguments in (
            (2, "required", DEDICATED),
            (2, "--mode", ("host", "config", "--topology", "2x20")),
            (2, "--mode", (*MINE, "--mode", "fast")),
            (1, "there is no such file", (*DEDICATED, "--topology", "2x")),
            (1, "there is no such file", (*DEDICATED, "--topology", "x" * 5000)),
            (1, "there is no such file", (*DEDICATED, "--topology", "a\0b")),
            (1, "cannot read", (*DEDICATED, "--topology", "/")),
            (2, "--memory-gb", (*MINE, "--memory-gb", "0")),
            (2, "--write-iops", (*MINE, "--write-iops", "0")),
            (1, "in its own format", (*MINE, "--output-dir", "/x", "-f", "json")),
            (1, "cannot write", (*MINE, "--output-dir", "/dev/null/x")),
            (1, "exclusive: cell", (*MINE[:3], "mixed", *MINE[4:])),
            (1, "0 to 19", (*MINE, "--reserve", "20")),
            (2, "--reserve", (*MINE, "--reserve", "x")),
        ):
            self.assert_refused(status, words, *arguments)
