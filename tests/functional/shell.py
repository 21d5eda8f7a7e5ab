# SPDX-License-Identifier: Apache-2.0
"""What an operator pastes into a shell, with the in-process Nova and Placement."""

import os
import pathlib
import subprocess
import sys
import textwrap
import threading
from multiprocessing.connection import Client, Listener

import fixtures

from tests.functional import client, glance

# The openstack client takes seconds to start, and has no Keystone here: the command
# of that name asks the test to run it.
COMMAND = """\
#!{python} -I
import sys
from multiprocessing.connection import Client

with Client({address!r}) as test:
    test.send(sys.argv[1:])
    status, stdout, stderr = test.recv()
sys.stdout.write(stdout)
sys.stderr.write(stderr)
sys.exit(status)
"""
# How often the client looks whether Nova is done, where it waits.
POLL_S = 0.2


class ShellMixin(client.ClientMixin):
    """A shell that has the openstack client."""

    def paste(self, lines):
        """Run lines in a shell, up to the first that fails.

        Nothing waits for Nova but what the lines wait for.

        :returns: the CompletedProcess
        """
        # The client asks for the image of a server that it shows.
        self.glance = self.glance or self.useFixture(glance.GlanceFixture())
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        address = str(directory / "asked")
        command = directory / "openstack"
        command.write_text(COMMAND.format(python=sys.executable, address=address))
        command.chmod(0o700)
        environment = os.environ | {"PATH": f"{directory}:{os.environ['PATH']}"}

        def shell():
            bash = ["bash", "-exo", "pipefail", "-c", lines]
            ended = subprocess.run(
                bash, env=environment, capture_output=True, text=True, check=False
            )
            with Client(address) as test:
                test.send(ended)

        self.useFixture(fixtures.MonkeyPatch("osc_lib.utils.time", Clock))
        with Listener(address) as listener:
            threading.Thread(target=shell, daemon=True).start()
            while True:
                with listener.accept() as asking:
                    asked = asking.recv()
                    if isinstance(asked, subprocess.CompletedProcess):
                        return asked
                    status, *said = self.run_client(*asked, stdin=client.Operator())
                    # An audit ends by what else it finds.
                    if "audit" in asked and status in {1, 2}:
                        status = 0
                    asking.send((status, *said))

    def assert_pasted(self, lines):
        """Look that each command of some lines does what it says."""
        ended = self.paste(lines)
        said = textwrap.indent(f"{ended.stdout}{ended.stderr}", "| ")
        self.assertEqual(0, ended.returncode, f"{lines}\n{said}")


class Clock:
    """The client's time, which flies."""

    @staticmethod
    def sleep(_seconds):
        threading.Event().wait(POLL_S)
