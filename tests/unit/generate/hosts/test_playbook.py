# SPDX-License-Identifier: Apache-2.0

import pathlib
import re

import fixtures
import testtools
import yaml

from nova_perfvm.diagnose import audit
from nova_perfvm.generate.hosts import deployers, playbook, rendering
from tests import ansible
from tests.unit.generate.hosts.requests import configured


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


class NamesTest(testtools.TestCase):
    """What the playbook has in common with the code, by its name."""

    def setUp(self):
        super().setUp()
        (play, *_) = yaml.safe_load(playbook.files()[playbook.PLAYBOOK])
        self.own = play["vars"]

    def test_files_have_the_paths_of_plain_packages(self):
        for name in ("own_conf", "own_provider"):
            (path,) = re.findall(r"default\('(.*)'\)", self.own[name])
            self.assertIn(path, deployers.TOOLS["plain"])

    def test_the_checks_of_preflight(self):
        titles = [c.title for c in audit.selected(audit.Selection.PREFLIGHT)]
        self.assertEqual(
            set(), set(self.own["own_cloud_checks"]) - set(titles), "other titles"
        )

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
