# SPDX-License-Identifier: Apache-2.0
"""The commands of both programs, as each program finds them."""

import importlib.metadata

from nova_perfvm.osc import commands

# The group of entry points that the openstack client reads.
CLIENT = "openstack.perfvm.v1"
# {program: {command: its entry point}}.
COMMANDS = {
    "nova-perfvm": dict(commands.offline()),
    "openstack": {
        entry.name.removeprefix("perfvm_").replace("_", " "): entry
        for entry in importlib.metadata.entry_points(group=CLIENT)
    },
}


def parser(program, name):
    """Return the parser of a command."""
    return COMMANDS[program][name].load()(None, None).get_parser("")
