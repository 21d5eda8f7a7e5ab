# SPDX-License-Identifier: Apache-2.0

from nova_perfvm.generate.hosts import playbook
from nova_perfvm.measure import fleet
from tests.unit.osc.base import CommandCase


class PlaybookTests:
    """What holds for every playbook; a mixin."""

    def setUp(self):
        super().setUp()
        self.directory /= "new"
        self.command = (self.NOUN, "playbook", "--output-dir", str(self.directory))

    def files(self):
        return {path.name: path.read_text() for path in self.directory.iterdir()}

    def test_it_writes_what_ansible_takes(self):
        self.assertEqual(0, self.run_command(*self.command), self.stderr)
        self.assertEqual(self.ROOM.files(), self.files())
        self.assertIn(f"{self.directory}/{self.ROOM.PLAYBOOK}\n", self.stdout)

    def test_nothing_is_replaced_unasked_and_the_operators_own_never(self):
        self.directory.mkdir()
        name = self.ROOM.PLAYBOOK
        own = {"inventory.yml": "mine", name: "of an earlier version"}
        for path, text in own.items():
            (self.directory / path).write_text(text)
        self.assert_refused(1, f"already has {name}", *self.command)
        self.assertEqual(own, self.files())
        self.assertEqual(0, self.run_command(*self.command, "--force"), self.stderr)
        self.assertEqual(self.ROOM.files() | {"inventory.yml": "mine"}, self.files())


class FleetTest(PlaybookTests, CommandCase):
    NOUN, ROOM = "fleet", fleet


class HostsTest(PlaybookTests, CommandCase):
    NOUN, ROOM = "host", playbook

    def test_it_says_what_to_do_next(self):
        self.assertEqual(0, self.run_command(*self.command), self.stderr)
        self.assertIn(playbook.following(self.directory), self.stdout)
        self.assertIn(f"cp {playbook.INVENTORY} inventory.yml", self.stdout)
        self.assertIn(f"inventory.yml {playbook.PLAYBOOK} --check\n", self.stdout)
