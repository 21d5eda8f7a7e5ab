# SPDX-License-Identifier: Apache-2.0
"""Tasks of our playbooks say whether they change something, as ansible-lint asks."""

import pathlib

import testtools
import yaml

PACKAGE = pathlib.Path(__file__).parents[4] / "nova_perfvm"
PLAYBOOKS = (
    *PACKAGE.glob("generate/hosts/playbook/*.yml"),
    PACKAGE / "measure/fleet/fleet.yml",
)


def tasks_of(found):
    """Yield every task of plays, files of tasks and blocks."""
    for one in found if isinstance(found, list) else ():
        yield one
        for part in ("pre_tasks", "tasks", "handlers", "block", "rescue", "always"):
            yield from tasks_of(one.get(part))


class TasksTest(testtools.TestCase):
    def test_commands_say_when_they_change_something(self):
        commands, silent = 0, []
        for path in PLAYBOOKS:
            for task in tasks_of(yaml.safe_load(path.read_text())):
                said = task.get("ansible.builtin.command")
                commands += said is not None
                told = {"changed_when", "creates", "removes"} & {*task, *(said or ())}
                if said is not None and not told:
                    silent.append(f"{path.name}: {task['name']}")
        self.assertEqual([], silent)
        self.assertGreater(commands, 15)
