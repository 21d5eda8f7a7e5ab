# SPDX-License-Identifier: Apache-2.0

import importlib.metadata
import pathlib

import fixtures

from nova_perfvm.measure import fleet
from tests.unit.osc.test_shell import CommandCase


class PlaybookTest(CommandCase):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "new")
        self.command = ("fleet", "playbook", "--output-dir", str(self.directory))

    def files(self):
        return {path.name: path.read_text() for path in self.directory.iterdir()}

    def test_it_writes_what_ansible_takes(self):
        self.assertEqual(0, self.run_command(*self.command), self.stderr)
        self.assertEqual(fleet.files(), self.files())
        self.assertIn(f"{self.directory}/fleet.yml\n", self.stdout)

    def test_nothing_is_replaced_unasked_and_the_operators_own_never(self):
        self.directory.mkdir()
        own = {"inventory.yml": "mine", "fleet.yml": "of an earlier version"}
        for name, text in own.items():
            (self.directory / name).write_text(text)
        self.assert_refused(1, "already has fleet.yml", *self.command)
        self.assertEqual(own, self.files())
        self.assertEqual(0, self.run_command(*self.command, "--force"), self.stderr)
        self.assertEqual(fleet.files() | {"inventory.yml": "mine"}, self.files())

    def test_it_is_part_of_the_client_and_needs_no_cloud(self):
        (entry,) = importlib.metadata.entry_points(
            group="openstack.perfvm.v1", name="perfvm_fleet_playbook"
        )
        self.assertFalse(entry.load().command().auth_required)
