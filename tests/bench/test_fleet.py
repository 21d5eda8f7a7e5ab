# SPDX-License-Identifier: Apache-2.0
"""The playbook for fleets, run on this machine and on one that ssh reaches."""

import json
import os
import re
import shlex
import subprocess
from typing import ClassVar

import yaml

from nova_perfvm.measure import fleet, samples
from nova_perfvm.measure.bench import scenario
from nova_perfvm.measure.collect import reading
from tests import ansible, documented
from tests.bench import machine, test_run

SCENARIO = {
    "schema_version": "1.0",
    "repeats": 1,
    "warm_up": 0,
    "tools": test_run.SYSBENCH,
}


def words_of(command):
    """Return a program of Ansible and its arguments, as ``ansible.run`` takes them."""
    return shlex.split(command.replace(" -i inventory.yml", ""))


class FleetCase(test_run.RunCase):
    def setUp(self):
        super().setUp()
        self.results = self.directory / "results"
        for name, text in fleet.files().items():
            (self.directory / name).write_text(text)

    def ansible(self, program, *arguments):
        return ansible.run(
            self.directory, program, *arguments, timeout_s=test_run.PATIENCE_S
        )

    def inventory(self, document):
        path = self.directory / "inventory.yml"
        path.write_text(yaml.safe_dump(document, sort_keys=False))

    def files(self):
        """Return what is left, {path: data}."""
        return {
            str(path.relative_to(self.results)): path.read_bytes()
            for path in self.results.rglob("*")
            if path.is_file()
        }


class ScenarioTest(FleetCase):
    def test_the_example_makes_one_that_bench_run_takes(self):
        (copy,) = documented.of(self)
        subprocess.run(shlex.split(copy.text), check=True, cwd=self.directory)
        # Numbers of VMs for bench scaling, and what else a machine may have.
        more = {
            "name": "vm1",
            "perfvm_at_once": [1, 2],
            "ansible_port": 2222,
            "ansible_ssh_private_key_file": "/k",
            "ansible_ssh_common_args": "-o ProxyJump=bastion",
        }
        play = {
            "hosts": "localhost",
            "gather_facts": False,
            "vars": {
                # As fleet.yml has it; it is not the machines'.
                "ansible_connection": "local",
                "ansible_become": False,
                "perfvm_hosts_of_run": ["compute1"],
                "perfvm_guests_of_run": ["vm1", "vm2"],
                "perfvm_server_of_run": ["generator"],
            },
            "tasks": [
                {"template": {"src": "scenario.yaml.j2", "dest": "found.yaml"}},
                {"add_host": more},
                {"template": {"src": "scenario.yaml.j2", "dest": "more.yaml"}},
            ],
        }
        (self.directory / "play.yml").write_text(yaml.safe_dump([play]))
        status, said = self.ansible("ansible-playbook", "play.yml")
        self.assertEqual(0, status, said)
        found = scenario.load(self.directory / "found.yaml")
        self.assertEqual(
            {"host": ("compute1-node0", "compute1-node1"), "vms-2": ("vm1", "vm2")},
            dict(found.groups),
        )
        self.assertEqual(
            scenario.Target("compute1-node1", "host", "root@192.0.2.10", node=1),
            found.target("compute1-node1"),
        )
        self.assertEqual(
            scenario.Target("vm2", "guest", "debian@192.0.2.22", prefix=("sudo", "-n")),
            found.target("vm2"),
        )
        self.assertEqual("generator", found.tools.iperf3.server)
        found = scenario.load(self.directory / "more.yaml")
        self.assertEqual(
            {"vms-1": ("vm1",), "vms-2": ("vm1", "vm2")},
            {k: v for k, v in found.groups.items() if k != "host"},
        )
        self.assertEqual(
            ("-p", "2222", "-i", "/k", "-o", "ProxyJump=bastion"),
            found.target("vm1").ssh_options,
        )


class TagsTest(FleetCase):
    def test_each_does_only_that(self):
        self.inventory({})
        for tag, own, others in (
            ("collect", "Keep what was collected", "Measure, one host"),
            ("bench", "Measure, one host", "Copy the collector"),
        ):
            status, said = self.ansible(
                "ansible-playbook", "fleet.yml", "--tags", tag, "--list-tasks"
            )
            self.assertEqual(0, status, said)
            self.assertIn(own, said)
            self.assertNotIn(others, said)
            for always in ("See whether it answers", "Name what is missing "):
                self.assertIn(always, said)


class HereTest(FleetCase):
    """With this machine alone, as host and guest."""

    def fleet(self, **guests):
        here = {"ansible_connection": "local"}
        self.inventory(
            {
                "all": {"vars": {"perfvm_interval": 0.1, "perfvm_scenario": SCENARIO}},
                "perfvm_hosts": {"hosts": {"compute1": here}},
                "perfvm_guests": {"hosts": {n: here | v for n, v in guests.items()}},
            }
        )

    def test_guests_of_no_host_of_the_fleet(self):
        self.fleet(vm1={"perfvm_host": "compute1"}, vm2={"perfvm_host": "compute"})
        status, said = self.ansible("ansible-playbook", "fleet.yml", "--check")
        self.assertEqual(2, status, said)
        end = said[said.index("Not all is done") :].partition("PLAY RECAP")[0]
        words = "vm2: not measured: its perfvm_host, compute, is none of perfvm_hosts"
        self.assertIn(words, " ".join(end.split()))
        self.assertNotIn("vm1", end)
        # Nor is it measured beside nobody.
        self.assertNotIn("Know what has to be there for compute]", said)

    def test_results_elsewhere(self):
        (command,) = documented.of(self)
        self.fleet()
        elsewhere = self.directory / "elsewhere"
        text = re.sub("(perfvm_results=)[^ ]+", rf"\1{elsewhere}", command.text)
        status, said = self.ansible(*words_of(text), "--tags", "collect")
        self.assertEqual(0, status, said)
        self.assertFalse(self.results.exists())
        self.results = elsewhere
        self.assertEqual({"collected/compute1.json"}, set(self.files()))


class PlaybookTest(FleetCase):
    COMMAND: ClassVar = json.dumps({"perfvm_command": test_run.COMMAND})

    def setUp(self):
        super().setUp()
        self.need("sysbench", "ip", machine.SSHD, "ssh", "ssh-keygen")
        if os.geteuid():
            self.skipTest("network namespaces need root")
        self.far = self.useFixture(machine.Machine())

    def fleet(self, **broken):
        """Write an inventory of two hosts, here, with a guest each, there.

        :param broken: {machine: variables}
        """
        far = {
            "ansible_host": self.far.address,
            "ansible_port": machine.PORT,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.far.key),
            "ansible_ssh_common_args": " ".join(self.far.options),
        }
        here = {"ansible_connection": "local"}
        self.inventory(
            {
                "all": {"vars": {"perfvm_interval": 0.1, "perfvm_scenario": SCENARIO}},
                "perfvm_hosts": {
                    "hosts": {
                        name: here | broken.get(name, {})
                        for name in ("compute1", "compute2")
                    }
                },
                "perfvm_guests": {
                    "hosts": {
                        f"vm{n}": far
                        | {"perfvm_host": f"compute{n}"}
                        | broken.get(f"vm{n}", {})
                        for n in (1, 2)
                    }
                },
            }
        )

    def play(self, command):
        return self.ansible(*words_of(command.text), "-e", self.COMMAND)

    def test_a_fleet(self):
        check, run = documented.of(self)
        # Nobody listens there, and there is no such Python.
        self.fleet(
            vm2={"ansible_port": 9}, compute2={"perfvm_python": "/nonexistent/python"}
        )
        status, said = self.play(check)
        self.assertEqual(2, status, said)
        self.assertIn("run compute2: not begun without vm2", said)
        self.assertFalse(self.results.exists())

        status, said = self.play(run)
        self.assertEqual(2, status, said)
        end = said[said.index("Not all is done") :]
        for words in (
            "compute2: Collect: ",
            "/nonexistent/python",
            f"connect to host {self.far.address} port 9: Connection refused",
            "run compute2: not begun without compute2, vm2",
        ):
            self.assertIn(words, end)
        self.assertNotIn("vm1", end.partition("PLAY RECAP")[0])
        # What the others have left is whole, and of nobody else.
        first = self.files()
        self.assertEqual(
            {
                *("collected/compute1.json", "collected/vm1.json"),
                *("runs/compute1.json", "runs/compute1.scenario.yaml"),
            },
            set(first),
        )
        self.check_collected("compute1", "host")
        self.check_collected("vm1", "guest")
        self.check_run()

        # Mended, the rest is done; what was done is kept.
        self.fleet()
        status, said = self.play(run)
        self.assertEqual(0, status, said)
        second = self.files()
        self.assertEqual(first, {name: second[name] for name in first})
        self.assertEqual(8, len(second))
        samples.load([str(self.results / "runs/compute2.json")])

        # Once more: nothing is changed, here or there, nor installed.
        status, said = self.play(run)
        self.assertEqual(0, status, said)
        self.assertEqual(second, self.files())
        self.assertNotIn("changed: [", said)
        installing = said.index("TASK [Install the tools]")
        self.assertNotIn("ok: [", said[installing : said.index("TASK", installing + 1)])

    def check_collected(self, name, kind):
        """Look whether a check takes what was collected as it is."""
        path = self.results / f"collected/{name}.json"
        self.assertEqual(0o600, path.stat().st_mode & 0o777)
        found = reading.read(str(path), kind)
        nics = {p.split("/")[4] for p in found.matching("/sys/class/net/*")}
        # The namespace's, or those of this machine.
        self.assertEqual(kind == "guest", nics <= {"eth0", "lo"}, nics)
        status, stdout, stderr = self.run_it(kind, "check", str(path), "-f", "json")
        self.assertIn(status, {0, 1, 2}, stderr)
        self.assertGreater(len(json.loads(stdout)), 3)

    def check_run(self):
        """Look how the run was made, and whether compare takes it as it is."""
        path = self.results / "runs/compute1.json"
        run = json.loads(path.read_text())["run"]
        (session,) = run["sessions"]
        looks = session["targets"]
        self.assertEqual({"compute1", "vm1"}, set(looks))
        # Through ssh an answer takes its time; it is the same clock.
        clock = looks["vm1"]["clock"]
        self.assertGreater(clock["uncertainty_s"], 0)
        self.assertLess(abs(clock["offset_s"]), 1 + clock["uncertainty_s"])
        self.assertEqual("", looks["vm1"]["not_collected"])
        self.assertEqual([], run["failures"])
        status, stdout, stderr = self.run_it(
            "bench", "compare", str(path), "-f", "json"
        )
        self.assertIn(status, {1, 2}, stderr)
        self.assertEqual({"vm1"}, {row["VM"] for row in json.loads(stdout)})
