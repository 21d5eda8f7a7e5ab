# SPDX-License-Identifier: Apache-2.0
"""Each command, called as it has to be, on a cloud that is not what it should be."""

import contextlib
import io
import types

import fixtures
from cliff.app import App
from cliff.commandmanager import CommandManager

from nova_perfvm.cloud.api import API
from tests import console, programs


class Answer:
    """What every request to a cloud is answered with."""

    reason = "Forbidden"
    content = b"{}"

    def __init__(self, status):
        self.status_code = status

    def json(self):
        return {"forbidden": {"message": "Policy does not allow it"}}


class Connection:
    """The SDK's, of a cloud that gives one answer to everything."""

    current_project_id = "p"

    def __init__(self, status):
        service = types.SimpleNamespace(
            request=lambda path, method, **_: Answer(status)
        )
        self.compute = self.image = self.placement = self.identity = service


class Client(App):
    """The openstack client, with the commands of this project alone."""

    NAME = "openstack"

    def __init__(self, cloud):
        super().__init__("", "1", CommandManager(programs.CLIENT))
        self.there = cloud is not None
        self.client_manager = types.SimpleNamespace(perfvm=cloud)

    def prepare_to_run_command(self, cmd):
        if cmd.auth_required and not self.there:
            raise ValueError("Missing value auth-url required for auth plugin password")


def run(program, arguments, cloud=None):
    """Run a command; return its exit status, standard output and standard error."""
    if program == "nova-perfvm":
        return console.run(*arguments)
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        fixtures.MonkeyPatch("logging.root.handlers", []),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            status = Client(cloud).run(["perfvm", *map(str, arguments)])
        except SystemExit as exc:
            status = exc.code or 0
    return status, stdout.getvalue(), stderr.getvalue()


def forbidding():
    """Return a cloud whose credentials are no administrator's."""
    return API(Connection(403))
