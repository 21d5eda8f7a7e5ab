# SPDX-License-Identifier: Apache-2.0
"""``server check`` on a real Nova: its API, its database and its domains' XML."""

import pathlib
import re
import shlex

import fixtures

from tests import documented
from tests.functional import base, client
from tests.unit.measure import hosts

MEMBER = {"user": "member", "roles": "member,reader"}
LONG_AGO = "2020-01-01T00:00:00+00:00"
LATER = "2120-01-01T00:00:00+00:00"
# What differs from cloud to cloud in what is printed: {pattern: what stands for it}.
OWN = {
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "UUID",
    r"\d+:\d+( \d+:\d+)+": "PAIRS",
    r"CPUs \d+-\d+ of NUMA node \d": "CPUs N-N of NUMA node N",
    r"\bCPU \d+": "CPU N",
    r"-{3,}": "---",
}


def fixed(text):
    """Return what a command prints in every cloud, however wide its columns are."""
    text = " ".join(text.split())
    for pattern, word in OWN.items():
        text = re.sub(pattern, word, text)
    return text


class TestServerCheck(client.ClientMixin, base.FunctionalTest):
    PLACEMENT = "slots"
    FLAVORS = (base.HP_64, base.GENERAL_2)

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.cloud.start_configured("hp1", self.policy, "dedicated")
        self.policy_file = self.write_policy()

    def collect(self, host, change=str, taken_at=LATER):
        """Write what host collect would of the domains that Nova made.

        :param change: of the XML of a server
        """
        domains = {i: change(xml) for i, xml in self.cloud.domains(host).items()}
        collected = hosts.of_domains(host, domains, taken_at)
        number = len(list(self.directory.iterdir()))
        path = self.directory / f"{host}-{number}.json"
        path.write_text(hosts.as_json(collected))
        return str(path)

    def check(self, *arguments, **identity):
        """Return the exit status, the rows, and what is said beside them."""
        policy = ("--policy", self.policy_file)
        return self.run_json("server", "check", *arguments, *policy, **identity)

    def check_one(self, *arguments):
        status, (row,), _ = self.check(*arguments)
        self.assertEqual("hypervisor.three_way", row["Code"])
        self.assertIn("Nova's API", row["Source"])
        return status, row["Level"], row

    def test_the_three_agree(self):
        server = self.boot()
        file = self.collect("hp1")
        for arguments in ([server.name], [server.id], ["--host", "hp1"]):
            status, found, row = self.check_one(*arguments, "--collected", file)
            self.assertEqual((0, "ok"), (status, found), row)
            self.assertIn(str(server.id), row["Subject"])
            self.assertEqual("all agree on 20 vCPUs", row["Observed"])
            self.assertIn("/proc/4100/task/*/status", row["Source"])

        # Without a file
        pins = self.cloud.guest(self.servers.show(server)).vcpupin
        status, found, row = self.check_one(server.name)
        strict, *_ = self.check(server.name, "--strict")
        self.assertEqual((0, "unknown", 1), (status, found, strict))
        (third,) = pins[3]
        self.assertIn(f" 3:{third} ", row["Observed"])
        self.assertIn("libvirt and the kernel were not asked", row["Observed"])
        self.assertIn("on hp1: nova-perfvm host collect", row["Remedy"])

    def test_pins_differ(self):
        server = self.boot()
        pins = self.cloud.guest(self.servers.show(server)).vcpupin
        (third,) = pins[3]
        other = 19 if third >= 20 else 39

        def repinned(xml):
            return re.sub(r"""(vcpu=.3. cpuset=).\d+.""", rf'\1"{other}"', xml)

        file = self.collect("hp1", change=repinned)
        status, found, row = self.check_one(server.name, "--collected", file)
        self.assertEqual((2, "failure"), (status, found))
        words = f"vCPU 3: Nova CPU {third}, libvirt CPU {other}"
        self.assertEqual(words, row["Observed"])
        self.assertIn(f"openstack server reboot --hard {server.id}", row["Remedy"])

    def test_servers_without_cpus(self):
        self.cloud.start_configured("g1", self.policy, "shared")
        general = self.boot(base.GENERAL_2)
        for words, *arguments in (
            ("the VM owns no CPUs", general.name),
            ("no pinned server", "--host", "g1"),
        ):
            for file in ([], ["--collected", self.collect("g1")]):
                status, rows, _ = self.check(*arguments, *file)
                self.assertEqual((0, "unknown"), (status, rows[0]["Level"]))
                self.assertIn(words, rows[0]["Observed"])

        pinned = self.boot()
        self.servers.shelve(pinned)
        refused = self.boot_refused(base.GENERAL_2, host="hp1")
        for server, words in ((pinned, "SHELVED_OFFLOADED"), (refused, "ERROR")):
            status, found, row = self.check_one(server.id)
            self.assertEqual((0, "unknown"), (status, found))
            self.assertIn(f"on no host: {words}", row["Observed"])

    def test_files_of_other_hosts(self):
        server = self.boot()
        before = self.collect("hp1")
        older = self.collect("hp1", taken_at=LONG_AGO)
        self.cloud.start_configured("hp2", self.policy, "dedicated")
        other = self.collect("hp2")
        status, rows, stderr = self.check(server.name, "--collected", other)
        self.assertEqual((3, []), (status, rows))
        self.assertIn("was collected on hp2", stderr)

        moved = self.servers.cold_migrate(server)
        self.servers.confirm(moved)
        self.assertEqual("hp2", self.servers.show(server).host)
        # As if the domain had been left behind, or else the file was older.
        for file, expected, words in (
            (before, "failure", "if it has moved since"),
            (older, "unknown", "it may have moved"),
        ):
            _, rows, _ = self.check(server.id, "--collected", file)
            (row,) = [row for row in rows if "libvirt ran it on hp1" in row["Observed"]]
            self.assertEqual(expected, row["Level"])
            self.assertIn("Nova has it on hp2", row["Observed"])
            self.assertIn(words, row["Observed"] + row["Remedy"])
        _, found, _ = self.check_one(server.id, "--collected", self.collect("hp2"))
        self.assertEqual("ok", found)

    def test_documented_commands(self):
        self.boot(name="rgw1")
        moved = str(self.boot(name="rgw2").id)

        def repinned(xml):
            own = r"(vcpu=.3. cpuset=)." + r"(\d+)."
            other = 39 if re.search(own, xml)[2] == "19" else 19
            return re.sub(own, rf'\1"{other}"', xml) if moved in xml else xml

        file = self.collect("hp1", change=repinned)
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY", self.policy_file))
        statuses = []
        for command in documented.of(self):
            typed = shlex.split(command.text.replace("hp1.json", file))
            status, stdout, stderr = self.run_client(*typed[1:])
            statuses.append(status)
            self.assertIn("check of servers on hp1: ", stderr, command)
            if command.output:
                printed = fixed(stdout + stderr)
                self.assertEqual(fixed(command.output), printed, command.place)
        # rgw2 differs: asked for by name, and as a server of the host.
        self.assertEqual([2, 2], statuses)

    def test_what_cannot_be_asked(self):
        server = self.boot()
        other = self.cloud.boot(base.HP_64, name=server.name)
        for words, identity, *arguments in (
            ("no server nobody:", {}, "nobody"),
            ("no server no.*:", {}, "no.*"),
            (f"2 servers are called {server.name}:", {}, server.name),
            (other.id, {}, server.name),
            ("nowhere", {}, "--host", "nowhere"),
            ("tells only administrators", MEMBER, server.id),
            ("rights of an administrator", MEMBER, server.name),
            ("rights of an administrator", MEMBER, "--host", "hp1"),
        ):
            status, _, stderr = self.check(*arguments, **identity)
            self.assertEqual(3, status)
            self.assertIn(words, stderr)
        for arguments in ([], [server.id, "--host", "hp1"]):
            error = self.assertRaises(SystemExit, self.check, *arguments)
            self.assertEqual(3, error.code)
