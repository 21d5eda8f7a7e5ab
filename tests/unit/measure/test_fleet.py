# SPDX-License-Identifier: Apache-2.0
"""What is written for Ansible; tests/measure runs it."""

import argparse
import pathlib
import re

import testtools
import yaml

from nova_perfvm.measure import fleet
from nova_perfvm.measure.collect import collector
from nova_perfvm.osc.prove import Prove

ROOT = pathlib.Path(__file__).parents[3]


class FilesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.files = fleet.files()
        self.inventory = yaml.safe_load(self.files[fleet.INVENTORY])

    def test_the_collector_is_the_one_of_the_package(self):
        source = pathlib.Path(collector.__file__).read_text("utf-8")
        self.assertEqual(source, self.files[fleet.COLLECTOR])

    def test_the_example_proves_on_hosts_by_options_that_there_are(self):
        parser = argparse.ArgumentParser()
        for add_to in Prove.arguments:
            add_to(parser)
        words = self.inventory["perfvm_hosts"]["vars"]["perfvm_prove"]
        found = parser.parse_args(words)
        self.assertTrue(found.flavor and found.image)
        self.assertIsNone(found.host or found.output)

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
        self.assertGreater(len(commands), 2)
        for command in commands:
            start = "-i inventory.yml fleet.yml"
            self.assertEqual(start, command[: len(start)])
            self.assertIn(command[len(start) :].partition("=")[0], f" {usage}")
        tags = set(re.findall(r"``--tags (\w+)``", page))
        self.assertEqual(set(re.findall(r"--tags (\w+)", usage)), tags)
        plays = yaml.safe_load(self.files[fleet.PLAYBOOK])
        self.assertLessEqual(tags, set(re.findall(r"\w+", str(plays))))
