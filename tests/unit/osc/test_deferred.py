# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
from unittest import mock

import testtools

from nova_perfvm.osc import audit, deferred
from tests import programs

# Prints which modules of this package the client has loaded.
RUN = """
import sys
from openstackclient import shell
status = shell.main(sys.argv[1:])
print(*sorted(n for n in sys.modules if n.partition(".")[0] == "nova_perfvm"))
sys.exit(status)
"""


def client(*arguments):
    """Run the openstack client in a process of its own; return what it prints."""
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        check=False,
        capture_output=True,
        text=True,
    )


class CommandsTest(testtools.TestCase):
    def test_what_it_makes_is_a_command(self):
        made = deferred.audit.Audit(mock.Mock(), None, cmd_name="perfvm audit")
        self.assertIs(audit.Audit, type(made))
        # A name that is none is said when it is used.
        self.assertRaises(ImportError, deferred.nowhere.Audit.command)
        self.assertRaises(AttributeError, deferred.audit.Nothing.command)
        # What Python asks modules for is no module of commands.
        self.assertFalse(hasattr(deferred, "__path__"))


class ClientTest(testtools.TestCase):
    """What the openstack client loads of this package."""

    def test_a_command_loads_its_own_modules(self):
        ran = client("module", "list")
        self.assertEqual(0, ran.returncode, ran.stderr)
        plugin = [f"nova_perfvm.osc.{name}" for name in ("deferred", "plugin")]
        self.assertEqual(
            ["nova_perfvm", "nova_perfvm.osc", *plugin],
            ran.stdout.splitlines()[-1].split(),
        )
        ran = client("perfvm", "policy", "show")
        loaded = ran.stdout.splitlines()[-1].split()
        self.assertIn("nova_perfvm.osc.policy", loaded)
        self.assertNotIn("nova_perfvm.osc.audit", loaded)

    def test_help_and_completion_have_every_command(self):
        ran = client("complete")
        self.assertEqual(0, ran.returncode, ran.stderr)
        for name in programs.COMMANDS["openstack"]:
            # As a variable of the shell has it.
            variable = f"cmds_perfvm_{name.replace('-', '_').replace(' ', '_')}"
            self.assertRegex(ran.stdout, f"{variable}='-h --help[ ']")
        ran = client("help", "perfvm", "audit")
        self.assertIn("Find violations of the policy", ran.stdout)
        self.assertIn("--placement-conf", ran.stdout)
