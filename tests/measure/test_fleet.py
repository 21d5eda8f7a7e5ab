# SPDX-License-Identifier: Apache-2.0
"""The playbook for fleets, run on this machine and on one that ssh reaches."""

import json
import os
import re
import shlex
import subprocess

import yaml

from nova_perfvm.measure import fleet
from nova_perfvm.measure.collect import reading
from tests import ansible, documented
from tests.measure import machine, test_run

HERE = {"ansible_connection": "local"}
# It plays the part of prove; two at once would find each other's directory.
PROVE = """\
mkdir "$0.busy" || exit 3
echo "$*" >> "$0.asked"
while [ "$1" != --output ]; do shift; done
sleep 0.3
rmdir "$0.busy"
case "$*" in *--refute*) echo "REFUTED"; exit 2 ;; esac
echo {} > "$2"
"""


class FleetCase(test_run.RunCase):
    def setUp(self):
        super().setUp()
        self.results = self.directory / "results"
        for name, text in fleet.files().items():
            (self.directory / name).write_text(text)

    def play(self, command, *arguments):
        """Run a command as it is shown."""
        words = shlex.split(command.replace(" -i inventory.yml", ""))
        return ansible.run(
            self.directory, *words, *arguments, timeout_s=test_run.PATIENCE_S
        )

    def inventory(self, hosts, guests=()):
        document = {
            "all": {"vars": {"perfvm_interval": 0.1}},
            "perfvm_hosts": {"hosts": dict(hosts)},
            "perfvm_guests": {"hosts": dict(guests)},
        }
        path = self.directory / "inventory.yml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))

    def files(self):
        """Return what is left, {path: data}."""
        return {
            str(path.relative_to(self.results)): path.read_bytes()
            for path in self.results.rglob("*")
            if path.is_file()
        }


class HereTest(FleetCase):
    """With this machine alone."""

    def test_the_example(self):
        (copy,) = documented.of(self)
        subprocess.run(shlex.split(copy.text), check=True, cwd=self.directory)
        status, said = self.play("ansible-playbook fleet.yml --list-hosts")
        self.assertEqual(0, status, said)
        self.assertEqual({"compute1", "compute2", "vm1", "vm2"}, set(said.split()[-4:]))

    def test_each_tag_does_only_that(self):
        self.inventory({"compute1": HERE})
        for tag, own, other in (
            ("collect", "Collect\t", "Prove\t"),
            ("prove", "Prove\t", "Collect\t"),
        ):
            command = f"ansible-playbook fleet.yml --tags {tag} --list-tasks"
            status, said = self.play(command)
            self.assertEqual(0, status, said)
            self.assertIn(own, said)
            self.assertNotIn(other, said)
            self.assertIn("See whether it answers", said)

    def test_results_elsewhere(self):
        (command,) = documented.of(self)
        self.inventory({"compute1": HERE})
        elsewhere = self.directory / "elsewhere"
        text = re.sub("(perfvm_results=)[^ ]+", rf"\1{elsewhere}", command.text)
        status, said = self.play(text)
        self.assertEqual(0, status, said)
        self.assertFalse(self.results.exists())
        self.results = elsewhere
        # Nothing was asked to be proven.
        self.assertEqual({"compute1.json"}, set(self.files()))


class PlaybookTest(FleetCase):
    def setUp(self):
        super().setUp()
        self.need("ip", machine.SSHD, "ssh", "ssh-keygen")
        if os.geteuid():
            self.skipTest("network namespaces need root")
        self.far = self.useFixture(machine.Machine())
        self.program("prove", PROVE)
        self.prove = self.directory / "bin/prove"
        self.more = ("-e", json.dumps({"perfvm_command": [str(self.prove)]}))

    def fleet(self, **broken):
        """Write an inventory of hosts here, and a guest there.

        :param broken: {machine: variables}
        """
        far = {
            "ansible_host": self.far.address,
            "ansible_port": machine.PORT,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.far.key),
            "ansible_ssh_common_args": " ".join(self.far.options),
        }
        proven = HERE | {"perfvm_prove": ["--flavor", "hp.20c.128g"]}
        hosts = ("compute1", "compute2", "compute3")
        self.inventory(
            {name: proven | broken.get(name, {}) for name in hosts},
            {name: far | broken.get(name, {}) for name in ("vm1", "vm2")},
        )

    def test_a_fleet(self):
        check, run = documented.of(self)
        # Nobody listens there, there is no such Python, and a flavor is refuted.
        self.fleet(
            vm2={"ansible_port": 9},
            compute2={"perfvm_python": "/nonexistent/python"},
            compute3={"perfvm_prove": ["--refute"]},
        )
        status, said = self.play(check.text, *self.more)
        self.assertNotEqual(0, status, said)
        self.assertIn("vm2", said[said.index("UNREACHABLE") - 20 :])
        self.assertEqual({}, self.files())

        status, said = self.play(run.text, *self.more)
        self.assertNotEqual(0, status, said)
        # Ansible tells what ssh says, or that its pipe to ssh broke before.
        far = re.escape(self.far.address)
        refused = rf"host {far} port 9: Connection refused"
        self.assertRegex(said, rf"{refused}|host '{far}'[^\n]*Broken pipe")
        for words in ("/nonexistent/python", "REFUTED"):
            self.assertIn(words, said)
        first = self.files()
        self.assertEqual(
            {"compute1.json", "compute1.proof.json", "compute3.json", "vm1.json"},
            set(first),
        )
        self.check_collected("compute1", "host")
        self.check_collected("vm1", "guest")

        # Mended, the rest is done; what was done is kept.
        self.fleet()
        status, said = self.play(run.text, *self.more)
        self.assertEqual(0, status, said)
        second = self.files()
        self.assertEqual(first, {name: second[name] for name in first})
        self.assertEqual(8, len(second))
        asked = self.prove.with_suffix(".asked").read_text().splitlines()
        self.assertEqual(
            f"prove --host compute1 --output {self.results}/compute1.proof.json "
            "--flavor hp.20c.128g",
            asked[0],
        )
        self.assertEqual(4, len(asked))

        # Once more: nothing is changed, here or there.
        status, said = self.play(run.text, *self.more)
        self.assertEqual(0, status, said)
        self.assertEqual(second, self.files())
        self.assertNotIn("changed: [", said)

    def check_collected(self, name, kind):
        """Look whether a check takes what was collected as it is."""
        path = self.results / f"{name}.json"
        self.assertEqual(0o600, path.stat().st_mode & 0o777)
        found = reading.read(str(path), kind)
        nics = {p.split("/")[4] for p in found.matching("/sys/class/net/*")}
        # The namespace's, or those of this machine.
        self.assertEqual(kind == "guest", nics <= {"eth0", "lo"}, nics)
        status, stdout, stderr = self.run_it(kind, "check", str(path), "-f", "json")
        self.assertIn(status, {0, 1, 2}, stderr)
        self.assertGreater(len(json.loads(stdout)), 3)
