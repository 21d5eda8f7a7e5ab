# SPDX-License-Identifier: Apache-2.0
"""What is written for Ansible; tests/bench runs it."""

import pathlib
import re

import testtools
import yaml

from nova_perfvm.measure import fleet
from nova_perfvm.measure.bench import scenario
from nova_perfvm.measure.collect import collector

ROOT = pathlib.Path(__file__).parents[3]


class FilesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.files = fleet.files()
        self.inventory = yaml.safe_load(self.files[fleet.INVENTORY])

    def test_the_collector_is_the_one_of_the_package(self):
        source = pathlib.Path(collector.__file__).read_text("utf-8")
        self.assertEqual(source, self.files[fleet.COLLECTOR])

    def test_all_that_the_playbook_names_is_there(self):
        text = self.files[fleet.PLAYBOOK] + self.files["run.yml"]
        named = set(
            re.findall(r"(?:src|file): ([a-z.]+\.(?:yml|py|j2))$", text, re.MULTILINE)
        )
        self.assertEqual({"run.yml", "scenario.yaml.j2", "collector.py"}, named)
        self.assertLessEqual(named, set(fleet.FILES))

    def test_the_example_has_a_scenario_but_for_who_measures(self):
        document = self.inventory["all"]["vars"]["perfvm_scenario"] | {
            "targets": {"vm1": {"kind": "guest"}, "generator": {"kind": "host"}},
            "groups": {"vms": ["vm1"]},
        }
        found = scenario.parse(yaml.safe_dump(document))
        self.assertEqual(7, len(found.tools.used()))

    def test_each_guest_of_the_example_is_on_one_of_its_hosts(self):
        guests = self.inventory["perfvm_guests"]["hosts"].values()
        hosts = self.inventory["perfvm_hosts"]["hosts"]
        self.assertEqual(set(hosts), {guest["perfvm_host"] for guest in guests})

    def test_each_variable_that_the_page_names_is_one_of_the_playbook(self):
        page = (ROOT / "doc/source/admin/benchmarks.rst").read_text()
        named = set(re.findall(r"perfvm_[a-z_]+", page))
        self.assertGreater(len(named), 3)
        known = "".join(self.files.values())
        self.assertEqual(set(), {name for name in named if name not in known})

    def test_each_command_of_the_page_is_one_that_the_playbook_knows(self):
        page = (ROOT / "doc/source/admin/benchmarks.rst").read_text()
        usage = self.files[fleet.PLAYBOOK].partition("\n- name")[0]
        commands = re.findall(r"^ +\$ ansible-playbook (.+)$", page, re.MULTILINE)
        self.assertGreater(len(commands), 3)
        for command in commands:
            start = "-i inventory.yml fleet.yml"
            self.assertEqual(start, command[: len(start)])
            self.assertIn(command[len(start) :].partition("=")[0], f" {usage}")
        tags = set(re.findall(r"``--tags (\w+)``", page))
        self.assertEqual(set(re.findall(r"--tags (\w+)", usage)), tags)
        plays = yaml.safe_load(self.files[fleet.PLAYBOOK])
        self.assertLessEqual(tags, set(re.findall(r"\w+", str(plays))))
