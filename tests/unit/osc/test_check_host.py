# SPDX-License-Identifier: Apache-2.0
"""``host check`` by the console script."""

import dataclasses
import json
import pathlib

from nova_perfvm.facts import snapshot
from nova_perfvm.measure.checks import host as package
from nova_perfvm.measure.checks.check import checks_of
from nova_perfvm.measure.observed.domains import LIST
from nova_perfvm.policy import HostShape, loader
from tests.unit.measure import hosts
from tests.unit.osc.base import CommandCase
from tests.unit.rules import hosts as rules

CHECKS = checks_of(package)
CONF = "/etc/nova/nova.conf"
POLICY = loader.dump(
    dataclasses.replace(
        rules.policy(mem_page_size="1GB"), host_shapes=[HostShape(2, 21)]
    )
)


class CheckHostTest(CommandCase):
    def setUp(self):
        super().setUp()
        host = hosts.roomy(pages_kb=1048576)
        # No host's nova.conf is collected: there are passwords in it.
        files = {path: text for path, text in host.files.items() if path != CONF}
        self.host = dataclasses.replace(host, files=files)
        self.clean = self.collected("clean", self.host)
        self.policy = self.write("perfvm.yaml", POLICY)
        self.conf = self.write("nova.conf", host.files[CONF])
        self.snapshot = self.write("cloud.json", snapshot.dumps(hosts.snapshot()))
        self.known = (
            *("--policy", self.policy, "--nova-conf", self.conf),
            *("--snapshot", self.snapshot),
        )

    def collected(self, name, collected):
        return self.write(name, hosts.as_json(collected))

    def check(self, *arguments):
        status = self.run_command("host", "check", *arguments)
        return status, self.stdout, self.stderr

    def test_exit_codes(self):
        slow = {**self.host.files, "/sys/kernel/mm/ksm/run": "1\n"}
        slow |= {"/sys/kernel/mm/ksm/merge_across_nodes": "0\n"}
        slow = self.collected("slow", dataclasses.replace(self.host, files=slow))
        xml = hosts.domain_xml(3, pins=["0"] * 20)
        broken = self.collected("broken", hosts.with_domains(self.host, vm3=xml))
        guest = self.collected("guest", dataclasses.replace(self.host, kind="guest"))
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
            status, _, stderr = self.check(*arguments)
            self.assertEqual(expected, status, f"{arguments} {stderr}")

    def test_what_is_no_nova_conf(self):
        for path, words in (
            (self.clean, "this is a collected file of a host"),
            (self.write("other.ini", "[cloud]\na = 1\n"), "nothing of Nova in it"),
            (self.write("prose", "a = 1\n"), "no configuration file: "),
            (self.directory, "Is a directory"),
        ):
            arguments = (self.clean, *self.known, "--nova-conf", path)
            status, stdout, stderr = self.check(*arguments)
            self.assertEqual((3, ""), (status, stdout), path)
            for part in (str(path), words, "expected the host's nova.conf"):
                self.assertIn(part, stderr)
        path = self.write("odd", "[compute]\ncpu_dedicated_set = 0-x\n")
        status, _, stderr = self.check(self.clean, "--nova-conf", path)
        self.assertEqual(3, status)
        self.assertIn(f"{path}: [compute]cpu_dedicated_set: ", stderr)

    def test_a_host_of_another_name(self):
        named = dataclasses.replace(self.host, hostname="localhost")
        path = self.collected("named", named)
        status, _, stderr = self.check(path, *self.known)
        self.assertEqual(3, status)
        self.assertIn("--host NAME, of compute1, compute2", stderr)
        status, _, stderr = self.check(path, *self.known, "--host", "compute1")
        self.assertEqual(0, status, stderr)

    def test_without_virsh_the_reason_is_told_once(self):
        reason = "no such command: virsh"
        unread = {LIST: reason, "virsh -r capabilities": reason}
        blind = dataclasses.replace(self.host, commands={}, unread=unread)
        path = self.collected("blind", blind)
        status, stdout, _ = self.check(path, *self.known, "-f", "json")
        rows = json.loads(stdout)
        skips = [row for row in rows if row["Observed"] == reason]
        self.assertGreater(len(skips), 10)
        for row in skips:
            self.assertIn("install libvirt-clients", row["Remedy"])
        found = self.check(path, *self.known)
        self.assertEqual((status, 1), (found[0], found[1].count(reason)))
        unknown = found[1].partition("\nOK\n")[0]
        for row in skips:
            self.assertEqual(1, unknown.count(row["Code"]), row["Code"])

    def test_what_needs_root_says_so(self):
        numa_maps = f"/proc/{hosts.FIRST_PID + 100}/numa_maps"
        files = {p: text for p, text in self.host.files.items() if p != numa_maps}
        unread = {numa_maps: "permission denied"}
        path = self.collected(
            "user", dataclasses.replace(self.host, files=files, unread=unread)
        )
        rows = json.loads(self.check(path, *self.known, "-f", "json")[1])
        denied = [row for row in rows if row["Observed"] == "permission denied"]
        self.assertIn("hypervisor.memory_local", {row["Code"] for row in denied})
        for row in denied:
            self.assertIn("as root", row["Remedy"])

    def test_this_machine(self):
        # The sets say that VMs own CPUs here: else nobody asks where the NICs are.
        online = pathlib.Path("/sys/devices/system/cpu/online").read_text().strip()
        conf = self.write("here.conf", f"[compute]\ncpu_dedicated_set = {online}\n")
        arguments = ("--nova-conf", conf, "--interval", "0.2", "-f", "json")
        status, stdout, stderr = self.check(*arguments)
        self.assertIn(status, {0, 1, 2}, stderr)
        rows = json.loads(stdout)
        found = {row["Code"] for row in rows}
        self.assertEqual({check.code for check in CHECKS}, found)
