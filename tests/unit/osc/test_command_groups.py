# SPDX-License-Identifier: Apache-2.0
import collections
import importlib.metadata

import testtools

from nova_perfvm.osc import command_groups
from tests import console
from tests.unit.osc import invocations


class GroupsTest(testtools.TestCase):
    def names(self, group):
        for entry in importlib.metadata.entry_points(group=group):
            yield entry.name.replace("_", " ").removeprefix("perfvm ")

    def test_each_command_is_in_one_group(self):
        grouped = [name for names in command_groups.GROUPS.values() for name in names]
        counts = collections.Counter(grouped)
        self.assertEqual({1}, set(counts.values()))
        commands = {*self.names(invocations.CLIENT), *self.names(invocations.SCRIPT)}
        self.assertEqual(commands - {"help"}, set(counts))
        self.assertEqual(12, len(command_groups.GROUPS["Every day"]))

    def test_both_programs_list_them_so(self):
        for program, arguments, group in (
            ("openstack", ["help"], invocations.CLIENT),
            ("nova-perfvm", ["help"], invocations.SCRIPT),
            ("nova-perfvm", [], invocations.SCRIPT),
        ):
            status, said, stderr = invocations.run(program, arguments)
            self.assertEqual((0, ""), (status, console.without_policy(stderr)))
            lines = said.splitlines()
            begin = lines.index("Every day:")
            self.assertTrue(lines[begin + 1].startswith("  explain "), lines)
            listed = [line[2:17].strip() for line in lines[begin:] if line[:2] == "  "]
            listed = [name for name in listed if name not in {"complete", "help"}]
            order = [name for names in command_groups.GROUPS.values() for name in names]
            mine = {*self.names(group)} - {"help"}
            self.assertEqual([name for name in order if name in mine], listed)
            self.assertLessEqual(max(map(len, lines)), 100)
