# SPDX-License-Identifier: Apache-2.0
import collections
import importlib.metadata
import subprocess
import sys

import testtools

from nova_perfvm.osc import commands
from tests import console, programs
from tests.unit.osc import invocations

# {command: why the programs' lists differ in it}.
DIFFERENT = {
    "help": "nova-perfvm has cliff's help, which lists the commands by purpose, too",
    "policy check": "without a cloud there is nothing to compare a policy with",
    "tempest config": "Tempest's environment need not have the openstack client",
}


class TableTest(testtools.TestCase):
    def test_each_command_is_in_one_group(self):
        counts = collections.Counter(n for g in commands.GROUPS.values() for n in g)
        self.assertEqual({1}, set(counts.values()))
        everything = set().union(*programs.COMMANDS.values())
        self.assertEqual(everything - {"help"}, set(counts))
        self.assertEqual(12, len(commands.GROUPS["Every day"]))

    def test_the_client_has_the_same_list(self):
        for name in commands.COMMANDS.keys() | programs.COMMANDS["openstack"].keys():
            if name == "tempest config":
                self.assertNotIn(name, programs.COMMANDS["openstack"])
                continue
            entry = programs.COMMANDS["openstack"][name]
            at = "help:ShowHelp" if name == "help" else commands.COMMANDS[name]
            expected = f"nova_perfvm.osc.deferred:{at.replace(':', '.')}"
            self.assertEqual(expected, entry.value)

    def test_nova_perfvm_lacks_only_what_needs_a_cloud(self):
        of_client, of_script = (
            {
                name: entry.value.replace("deferred:", "").replace(":", ".")
                for name, entry in programs.COMMANDS[program].items()
            }
            for program in ("openstack", "nova-perfvm")
        )
        differing = {
            name
            for name in of_client.keys() | of_script.keys()
            if of_client.get(name) != of_script.get(name)
        }
        self.assertEqual({*commands.CLIENT_ONLY, *DIFFERENT}, differing)

    def test_nova_perfvm_has_no_entry_points_of_commands(self):
        distribution = importlib.metadata.distribution("nova-perfvm")
        groups = {entry.group for entry in distribution.entry_points}
        self.assertIn(programs.CLIENT, groups)
        self.assertNotIn("nova_perfvm.cli", groups)

    def test_each_class_is_there_and_asks_for_a_cloud_only_where_it_has_one(self):
        for name, entry in programs.COMMANDS["nova-perfvm"].items():
            command = entry.load()
            self.assertFalse(command.auth_required, name)
            self.assertFalse(getattr(command, "needs_cloud", False), name)

    def test_the_version_loads_no_command(self):
        """Start-up: neither a room of the package nor a module of a command."""
        code = (
            "import sys\n"
            "from nova_perfvm.osc.shell import main\n"
            "main(['--version'])\n"
            "print(*sorted(n for n in sys.modules if n.startswith('nova_perfvm')))"
        )
        ran = subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        )
        modules = ("", ".exceptions", ".osc", ".osc.commands", ".osc.output")
        expected = {f"nova_perfvm{name}" for name in (*modules, ".osc.shell")}
        expected.add("nova_perfvm.printable")
        self.assertEqual(expected, {*ran.stdout.splitlines()[-1].split()})


class HelpTest(testtools.TestCase):
    def test_both_programs_list_them_so(self):
        for program, arguments in (
            ("openstack", ["help"]),
            ("nova-perfvm", ["help"]),
            ("nova-perfvm", []),
        ):
            status, said, stderr = invocations.run(program, arguments)
            self.assertEqual((0, ""), (status, console.without_policy(stderr)))
            lines = said.splitlines()
            begin = lines.index("Every day:")
            self.assertTrue(lines[begin + 1].startswith("  explain "), lines)
            listed = [line[2:17].strip() for line in lines[begin:] if line[:2] == "  "]
            listed = [name for name in listed if name not in {"complete", "help"}]
            mine = programs.COMMANDS[program]
            expected = [name for name in commands.COMMANDS if name in mine]
            self.assertEqual(expected, listed)
            self.assertLessEqual(max(map(len, lines)), 100)
