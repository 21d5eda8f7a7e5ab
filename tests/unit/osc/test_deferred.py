# SPDX-License-Identifier: Apache-2.0
import importlib.metadata
import subprocess
import sys
from unittest import mock

import testtools

from nova_perfvm.osc import audit, deferred
from nova_perfvm.osc.base import PerfVMCommand

GROUPS = ("nova_perfvm.cli", "openstack.perfvm.v1")
COMMANDS = [
    entry for group in GROUPS for entry in importlib.metadata.entry_points(group=group)
]

# Runs a shell, and prints which modules of some packages it has loaded then.
RUN = """
import importlib, sys
shell, watched, *arguments = sys.argv[1:]
status = importlib.import_module(shell).main(arguments)
print(*sorted(n for n in sys.modules if n.partition(".")[0] in watched.split()))
sys.exit(status)
"""


def client(*arguments, shell="openstackclient.shell", watched="nova_perfvm"):
    """Run the openstack client in a process of its own; return what it prints."""
    return subprocess.run(
        [sys.executable, "-c", RUN, shell, watched, *arguments],
        check=False,
        capture_output=True,
        text=True,
    )


class CommandsTest(testtools.TestCase):
    def test_there_is_each(self):
        self.assertGreater(len(COMMANDS), 30)
        for entry in COMMANDS:
            with self.subTest(entry.name):
                command = entry.load()
                self.assertTrue(issubclass(command, deferred.DeferredCommand))
                self.assertTrue(issubclass(command.command(), PerfVMCommand))
                self.assertTrue(command.command().__doc__)

    def test_what_it_makes_is_a_command(self):
        made = deferred.audit.Audit(mock.Mock(), None, cmd_name="perfvm audit")
        self.assertIs(audit.Audit, type(made))
        self.assertEqual("perfvm audit", made.cmd_name)

    def test_a_name_that_is_none_is_said_when_it_is_used(self):
        self.assertRaises(ImportError, deferred.nowhere.Audit.command)
        self.assertRaises(AttributeError, deferred.audit.Nothing.command)
        # What Python asks modules for is no module of commands.
        self.assertFalse(hasattr(deferred, "__path__"))


class ClientTest(testtools.TestCase):
    """What the openstack client loads of this package."""

    def test_other_commands_load_the_plugin_alone(self):
        ran = client("module", "list")
        self.assertEqual(0, ran.returncode, ran.stderr)
        self.assertEqual(
            [
                "nova_perfvm",
                "nova_perfvm.osc",
                "nova_perfvm.osc.deferred",
                "nova_perfvm.osc.plugin",
            ],
            ran.stdout.splitlines()[-1].split(),
        )

    def test_a_command_loads_its_own(self):
        ran = client("perfvm", "policy", "show")
        self.assertEqual(0, ran.returncode, ran.stderr)
        self.assertIn("schema_version:", ran.stdout)
        loaded = ran.stdout.splitlines()[-1].split()
        self.assertIn("nova_perfvm.osc.policy", loaded)
        self.assertNotIn("nova_perfvm.osc.audit", loaded)

    def test_help_and_completion_have_every_command(self):
        ran = client("complete")
        self.assertEqual(0, ran.returncode, ran.stderr)
        for entry in importlib.metadata.entry_points(group=GROUPS[1]):
            # As a variable of the shell has it.
            name = entry.name.replace("-", "_")
            self.assertRegex(ran.stdout, f"cmds_{name}='-h --help ")
        ran = client("help", "perfvm", "audit")
        self.assertIn("Find what violates the policy", ran.stdout)
        self.assertIn("--placement-conf", ran.stdout)

    def test_what_needs_no_cloud_loads_no_client(self):
        ran = client(
            "--help",
            shell="nova_perfvm.osc.shell",
            watched="openstack openstackclient osc_lib nova",
        )
        self.assertEqual(0, ran.returncode, ran.stderr)
        self.assertIn("policy show", ran.stdout)
        self.assertEqual("", ran.stdout.splitlines()[-1])
