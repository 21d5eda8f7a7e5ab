# SPDX-License-Identifier: Apache-2.0

import importlib.metadata
import pathlib
import re

import fixtures
import testtools
import yaml

from nova_perfvm.diagnose import audit
from nova_perfvm.generate.hosts import deployers, playbook, rendering
from tests import ansible
from tests.unit.generate.hosts.requests import configured


def plays():
    return yaml.safe_load(playbook.files()[playbook.PLAYBOOK])


def tasks():
    """Yield the tasks of all files, those in blocks, too."""
    found = [yaml.safe_load(text) for text in playbook.files().values()]
    waiting = [entry for document in found for entry in document if entry]
    while waiting:
        entry = waiting.pop()
        if isinstance(entry, dict):
            yield entry
            for key in ("tasks", "block", "rescue"):
                waiting += entry.get(key, [])


class FilesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.files = dict(playbook.files())
        self.example = self.files.pop(playbook.INVENTORY)

    def test_every_variable_is_in_the_example_and_every_one_of_that_is_used(self):
        used = set(re.findall(r"perfvm_\w+", " ".join(self.files.values())))
        explained = set(re.findall(r"^ *#? *(perfvm_\w+):", self.example, re.MULTILINE))
        self.assertGreater(len(used), 20)
        # Groups and names of packages are no variables.
        self.assertEqual(used - {"perfvm_hosts"}, explained - {"perfvm_hosts"})

    def test_the_example_with_everything_uncommented_is_an_inventory(self):
        commented = r"^( +)# (?=[a-z_]+: )"
        whole = re.sub(commented, r"\1", self.example, flags=re.MULTILINE)
        group = yaml.safe_load(whole)["perfvm_hosts"]
        self.assertIn("perfvm_wait_s", group["vars"])
        modes = {host.get("perfvm_mode") for host in group["hosts"].values()}
        self.assertEqual({None, "shared"}, modes)

    def test_the_defaults_that_are_shown_are_those_that_are_taken(self):
        shown = yaml.safe_load(
            "\n".join(
                line.strip().removeprefix("# ")
                for line in self.example.splitlines()
                if re.match(r" *# perfvm_(conf_file|provider_file|nova_conf):", line)
            )
        )
        for name, value in shown.items():
            (taken,) = re.findall(
                rf"{name}\s*\| default\((.+?)\) }}}}", self.files[playbook.PLAYBOOK]
            )
            self.assertEqual(value, yaml.safe_load(taken), name)

    def test_commands_that_look_and_commands_that_run_elsewhere(self):
        found = list(tasks())
        looking = [task for task in found if task.get("check_mode") is False]
        commands = [t for t in looking if "ansible.builtin.command" in t]
        self.assertGreater(len(commands), 10)
        for task in commands:
            # What runs in check mode must not count as a change.
            self.assertIs(False, task.get("changed_when"), task["name"])
        delegated = [task for task in found if "delegate_to" in task]
        self.assertGreater(len(delegated), 6)
        for task in delegated:
            # As whoever runs it, whatever the inventory has for the hosts.
            self.assertIs(False, task["vars"]["ansible_become"], task["name"])
            self.assertEqual("local", task["vars"]["ansible_connection"])


class NamesTest(testtools.TestCase):
    """What the playbook has in common with the code, by its name."""

    def setUp(self):
        super().setUp()
        self.own = plays()[0]["vars"]

    def test_files_have_the_paths_of_plain_packages(self):
        for name in ("own_conf", "own_provider"):
            (path,) = re.findall(r"default\('(.*)'\)", self.own[name])
            self.assertIn(path, deployers.TOOLS["plain"])

    def test_the_checks_of_preflight(self):
        titles = [c.title for c in audit.selected(audit.Selection.PREFLIGHT)]
        self.assertEqual(
            set(), set(self.own["own_cloud_checks"]) - set(titles), "other titles"
        )

    def test_the_entry_points_of_the_commands_that_it_calls(self):
        text = " ".join(playbook.files().values())
        called = set(
            re.findall(r"'perfvm', '(\w+)'(?:,\s*'(list|show|drain|\w+)')?", text)
        )
        known = {
            entry.name
            for entry in importlib.metadata.entry_points(group="openstack.perfvm.v1")
        }
        self.assertGreater(len(called), 5)
        for noun, verb in called:
            names = {f"perfvm_{noun}", f"perfvm_{noun}_{verb}"}
            self.assertNotEqual(set(), names & known, f"{noun} {verb}")


class DocumentTest(testtools.TestCase):
    def test_files_that_it_has_written_are_known_by_their_first_lines(self):
        look = playbook.files()["look.yml"]
        (word,) = re.findall(r"'(\S+)' not in conf_before", look)
        for mode in ("dedicated", "shared"):
            text = rendering.as_files(configured(mode=mode))[rendering.NOVA_CONF]
            self.assertIn(word, text.partition("\n\n")[0])


class SyntaxTest(testtools.TestCase):
    def test_ansible_takes_it_with_the_example(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, text in playbook.files().items():
            (directory / name).write_text(text)
        example = directory / playbook.INVENTORY
        example.rename(directory / "inventory.yml")
        status, said = ansible.run(
            directory,
            "ansible-playbook",
            playbook.PLAYBOOK,
            "--list-tags",
            timeout_s=300,
        )
        self.assertEqual(0, status, said)
        (_, tags) = re.findall(r"TASK TAGS: \[(.*)\]", said)
        self.assertEqual({"always", *playbook.STEPS}, set(tags.split(", ")))
        self.assertIn(playbook.PLAYBOOK, playbook.following(directory))
