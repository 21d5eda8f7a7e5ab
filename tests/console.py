# SPDX-License-Identifier: Apache-2.0
"""The console script's function, as a process would call it."""

import contextlib
import io
import logging
import re

import fixtures
from osc_lib import clientmanager

from nova_perfvm.osc import shell

# What each command with a policy says first on standard error.
_POLICY_LINE = re.compile(
    r"^(new )?policy( in use)?: .+ \(sha256 [0-9a-f]{8}.*\)\n", re.MULTILINE
)


def forget_clients():
    """Let the openstack client of this process make its API clients anew.

    It keeps what make_client gave, with the cloud of that run, for the life of its
    process (osc_lib.clientmanager.ClientCache).
    """
    for member in vars(clientmanager.ClientManager).values():
        if isinstance(member, clientmanager.ClientCache):
            member._handle = None


def without_policy(text):
    """Return what was printed but for the lines that say which policy is used."""
    return _POLICY_LINE.sub("", text)


def run(*arguments):
    """Run nova-perfvm; return its exit status, standard output and standard error."""
    root = logging.getLogger()
    level = root.level
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        # Each run adds one for its own stderr.
        fixtures.MonkeyPatch("logging.root.handlers", []),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            status = shell.main([str(argument) for argument in arguments])
        except SystemExit as exc:
            status = exc.code or 0
        finally:
            root.setLevel(level)
    return status, stdout.getvalue(), stderr.getvalue()
