# SPDX-License-Identifier: Apache-2.0
"""Commands of the documentation that need no cloud, run as they are shown there."""

import dataclasses
import os
import pathlib
import re
import shlex
import subprocess

import fixtures
import yaml

from nova_perfvm.facts import snapshot
from nova_perfvm.facts.snapshot import ServerCell
from nova_perfvm.generate.hosts import playbook
from tests import console, documented, shown
from tests.unit.diagnose.explain.test_explain import UNITS
from tests.unit.diagnose.survey.test_collected import host
from tests.unit.facts.snapshot.clouds import GENERAL, Cloud
from tests.unit.known_bugs.clouds import cloud
from tests.unit.measure import hosts
from tests.unit.osc.base import CommandCase
from tests.unit.osc.test_migrations import page_cloud
from tests.unit.rules import hosts as rules

# Ends a command, for a file that gets what it prints.
REDIRECTION = re.compile(r" >>? (\S+)$")


def full_cloud():
    """Return the cloud of the page on ``explain``: x has CPUs where a slot was."""
    cloud = Cloud()
    cloud.add_host("hp1")
    cloud.add_host("hp2")
    cloud.add_host("g1", "shared")
    cloud.add_hp("hp1-vm1", "hp1")
    cloud.add_hp("hp1-vm2", "hp1", first=20, node=1)
    cloud.add_hp("hp2-vm1", "hp2")
    cloud.flavors["pinned"] = dataclasses.replace(
        cloud.flavors[GENERAL],
        id="pinned",
        name="pinned",
        extra_specs={"hw:cpu_policy": "dedicated"},
    )
    pins = {vcpu: 20 + vcpu for vcpu in range(8)}
    cell = ServerCell(1, frozenset(pins), 4096, pins)
    taken = {"PCPU": 8, "MEMORY_MB": 4096}
    cloud.add("x", "hp2", "pinned", taken, cells=(cell,), pinned=True)
    return cloud


def roomy_cloud():
    """Return the cloud of the page on ``what-if``."""
    cloud = Cloud()
    for name in ("hp1", "hp2", "hp3"):
        cloud.add_host(name)
    cloud.add_hp("db1", "hp1")
    cloud.add_hp("db2", "hp1", first=20, node=1)
    cloud.add_hp("web1", "hp2")
    cloud.add_hp("web2", "hp3")
    return cloud


class OfflineTest(CommandCase):
    """In a directory with the files that the pages name."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable("COLUMNS", "200"))
        self.addCleanup(os.chdir, pathlib.Path.cwd())
        os.chdir(self.directory)
        self.policy("perfvm.yaml")

    def policy(self, name, before="", after=""):
        """Write the built-in policy with some words replaced."""
        text = (shown.ROOT / "etc/nova_perfvm/perfvm.yaml").read_text()
        self.assertIn(before, text)
        pathlib.Path(name).write_text(text.replace(before, after))

    def run_shown(self, command, status=0):
        """Run a command; look at its exit status and output.  Return the output."""
        typed = REDIRECTION.sub("", command.text).replace("/etc/nova/", "")
        program, *words = shlex.split(typed, comments=True)
        if program == "nova-perfvm":
            found = self.run_command(*words)
        else:
            done = subprocess.run(
                [program, *words], check=False, capture_output=True, text=True
            )
            found, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
        printed = self.stdout + console.without_policy(self.stderr)
        self.assertEqual(status, found, f"{command.place}: {command.text}\n{printed}")
        for name in REDIRECTION.findall(command.text):
            pathlib.Path(name).parent.mkdir(exist_ok=True)
            pathlib.Path(name).write_text(self.stdout)
        # A terminal shows what a command says beside its table first.
        shown_first = console.without_policy(self.stderr) + self.stdout
        found = map(command.is_printed, (printed, shown_first))
        if command.output and not any(found):
            self.assertEqual(command.output, printed, command.place)
        return printed

    def test_flavors(self):
        for command in documented.of(self):
            self.assertNotEqual("", self.run_shown(command))

    def test_policies(self):
        smaller, check, tempest = documented.of(self)
        self.policy("new.yaml", "vcpus: 20", "vcpus: 18")
        self.run_shown(smaller)
        self.run_shown(check)
        self.run_shown(tempest)
        self.assertIn("[perfvm]\n", pathlib.Path("etc/tempest.conf").read_text())

    def test_hosts(self):
        # This machine may be too small for the built-in policy's VMs.
        flavors = {"name": "one", "memory_gb": [1], "root_gb": 0}
        document = rules.policy(vcpus=1).as_document()
        document["classes"]["high-performance"]["flavors"] = flavors
        pathlib.Path("small.yaml").write_text(yaml.safe_dump(document))
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY", "small.yaml"))
        for command in documented.of(self):
            printed = self.run_shown(command)
            if "--format kolla" in command.text:
                self.assertIn("nova/HOST/nova.conf", printed)
        self.assertEqual(
            set(playbook.files()),
            {path.name for path in pathlib.Path("hosts").iterdir()},
        )

    def test_explain(self):
        self.save(full_cloud())
        for command in documented.of(self):
            self.run_shown(command, status=int(" explain " in command.text))

    def test_plans(self):
        self.save(page_cloud())
        for command in documented.of(self):
            self.run_shown(command)

    def test_sizing(self):
        copied = pathlib.Path("etc/nova_perfvm/services.csv")
        copied.parent.mkdir(parents=True)
        copied.write_text((shown.ROOT / copied).read_text())
        for command in documented.of(self):
            # Some services stay on their servers.
            self.run_shown(command, status=int(command.text.startswith("nova-perfvm")))

    def test_known_bugs(self):
        listed, to = documented.of(self)
        self.save(cloud("32.2.1"))
        self.assertIn("2152697", self.run_shown(listed))
        self.assertIn("a (i-a)", self.run_shown(to, status=1))

    def test_what_if(self):
        remove, flip, convert, change, both = documented.of(self)
        cloud = roomy_cloud()
        self.save(cloud)
        self.run_shown(both)
        for name in ("hp7", "hp8"):
            cloud.add_host(name)
        cloud.add_hp("web3", "hp7")
        self.save(cloud)
        self.assertIn("web3 (i-web3) goes from hp7 to hp", self.run_shown(remove))
        self.policy("NEW.yaml", "max_per_host: 2", "max_per_host: 1")
        self.run_shown(change)
        for name in ("g3", "g4"):
            cloud.add_host(name, "shared")
        cloud.add("db3", "g3", "g.2c.4g", {"VCPU": 2, "MEMORY_MB": 4096})
        self.save(cloud)
        converted = self.run_shown(convert)
        self.assertIn("db3 (i-db3) goes from g3 to g4", converted)
        self.assertRegex(converted, r"all hosts .* total +\| +10 \| +12 ")
        cloud = Cloud(UNITS)
        cloud.add_host("g3", "shared")
        self.save(cloud)
        self.policy("units.yaml", "placement: slots", "placement: units")
        self.useFixture(fixtures.EnvironmentVariable("PERFVM_POLICY", "units.yaml"))
        self.assertRegex(self.run_shown(flip), r"g3 .* free +\| +0 \| +2 ")

    def test_audit(self):
        host = hosts.edited(hosts.host(), 1, ("='3' cpuset='3'", "='3' cpuset='9'"))
        pathlib.Path("compute1.json").write_text(hosts.as_json(host))
        pathlib.Path("cloud.json").write_text(snapshot.dumps(hosts.snapshot()))
        (command,) = documented.of(self)
        printed = self.run_shown(command, status=2)
        self.assertIn("vCPU 3: Nova CPU 3, libvirt CPU 9", printed)

    def test_survey(self):
        for number, name in ((2, "h1"), (1, "h2")):
            found = host(name, hosts.domain_xml(number, specs={}))
            pathlib.Path(f"{name}.json").write_text(hosts.as_json(found))
        (command,) = documented.of(self)
        # Neither Nova nor Placement was asked.
        printed = self.run_shown(command, status=1)
        self.assertIn("slots: 2 used, 2 free", printed)
