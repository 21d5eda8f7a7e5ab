# SPDX-License-Identifier: Apache-2.0
"""``host check`` by the console script."""

import contextlib
import dataclasses
import io
import json
import pathlib
from xml.etree import ElementTree as ET

import fixtures
import testtools

from nova_perfvm.facts import snapshot
from nova_perfvm.measure.checks import host as package
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.osc import shell
from tests.unit.measure import hosts

CHECKS = checks_of(package)
CONF = "/etc/nova/nova.conf"
POLICY = """\
schema_version: "1.0"
host_shape: 2x21
classes:
  high-performance:
    vcpus: 20
    cpu_policy: dedicated
    numa_nodes: 1
    max_per_host: 2
    exclusive: host
    vif_multiqueue: true
    mem_page_size: 1GB
    disk: {source: volume}
    flavors: {name: "hp.{vcpus}c.{memory_gb}g", memory_gb: [128]}
  general:
    default: true
    flavors: {name: "g.{vcpus}c", sizes: [{vcpus: 1, memory_gb: 2, root_gb: 20}]}
"""


class CheckHostTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY"))
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        host = hosts.host(pages_kb=1048576)
        # No host's nova.conf is collected: there are passwords in it.
        files = {path: text for path, text in host.files.items() if path != CONF}
        self.host = dataclasses.replace(host, files=files)
        self.clean = self.save("clean", self.host)
        self.policy = self.write("perfvm.yaml", POLICY)
        self.conf = self.write("nova.conf", host.files[CONF])
        self.snapshot = self.write("cloud.json", snapshot.dumps(hosts.snapshot()))
        self.known = (
            *("--policy", self.policy, "--nova-conf", self.conf),
            *("--snapshot", self.snapshot),
        )

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path

    def save(self, name, collected):
        return self.write(name, hosts.as_json(collected))

    def check(self, *arguments):
        stdout, stderr = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            try:
                status = shell.main(["host", "check", *map(str, arguments)])
            except SystemExit as exc:
                status = exc.code
        self.assertNotIn("Traceback", stderr.getvalue())
        return status, stdout.getvalue(), stderr.getvalue()

    def test_exit_codes(self):
        slow = {**self.host.files, "/sys/kernel/mm/ksm/run": "1\n"}
        slow |= {"/sys/kernel/mm/ksm/merge_across_nodes": "0\n"}
        slow = self.save("slow", dataclasses.replace(self.host, files=slow))
        xml = hosts.domain_xml(3, pins=["0"] * 20)
        broken = self.save("broken", hosts.with_domains(self.host, vm3=xml))
        guest = self.save("guest", dataclasses.replace(self.host, kind="guest"))
        for expected, arguments in (
            (0, [self.clean, *self.known, "--strict"]),
            (0, [self.clean, "--policy", self.policy]),
            (1, [self.clean, "--policy", self.policy, "--strict"]),
            (2, [self.clean]),
            (1, [slow, *self.known]),
            (2, [broken, *self.known]),
            (3, [guest, *self.known]),
            (3, [self.directory / "absent"]),
            (3, [self.clean, "--snapshot", self.directory / "absent"]),
            (3, [self.clean, "--nova-conf", self.directory / "absent"]),
            (3, [self.clean, "--policy", self.conf]),
            (3, [self.clean, *self.known, "--host", "nobody"]),
            (3, [self.clean, "--host", "compute1"]),
        ):
            with self.subTest(arguments=arguments):
                status, _, stderr = self.check(*arguments)
                self.assertEqual(expected, status, stderr)

    def test_a_host_of_another_name(self):
        named = dataclasses.replace(self.host, hostname="localhost")
        path = self.save("named", named)
        status, _, stderr = self.check(path, *self.known)
        self.assertEqual(3, status)
        self.assertIn("--host NAME, of compute1, compute2", stderr)
        status, _, stderr = self.check(path, *self.known, "--host", "compute1")
        self.assertEqual(0, status, stderr)

    def test_formats(self):
        _, stdout, stderr = self.check(self.clean, *self.known, "-f", "junit")
        cases = list(ET.fromstring(stdout).iter("testcase"))
        self.assertEqual(
            [check.title for check in CHECKS], [case.get("name") for case in cases]
        )
        self.assertIn(f"{len(CHECKS)} checks of host compute1: 0 fail", stderr)
        stdout = self.check(self.clean, "-f", "prometheus")[1]
        self.assertIn(
            'hostname="compute1",code="hypervisor.node_shape",status="fail"} 1',
            stdout,
        )
        rows = json.loads(self.check(self.clean, "-f", "json")[1])
        self.assertEqual("hypervisor.node_shape", rows[0]["Code"])

    def test_this_machine(self):
        status, stdout, stderr = self.check("--interval", "0.2", "-f", "json")
        self.assertIn(status, {0, 1, 2}, stderr)
        found = {row["Code"] for row in json.loads(stdout)}
        self.assertEqual({check.code for check in CHECKS}, found)
