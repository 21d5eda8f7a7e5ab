# SPDX-License-Identifier: Apache-2.0
"""The console script ``nova-perfvm``: everything that needs no cloud."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import TYPE_CHECKING, Final

from cliff.app import App
from cliff.commandmanager import CommandManager

from nova_perfvm.osc import command_groups, output

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME: Final = "nova-perfvm"
NAMESPACE: Final = "nova_perfvm.cli"


class Shell(App):
    """The cliff application; its commands are entry points."""

    NAME = NAME

    def __init__(self) -> None:
        """Describe the application to cliff."""
        super().__init__(
            description="VM classes for Nova: policy, flavors and images, offline",
            version=importlib.metadata.version(NAME),
            command_manager=CommandManager(NAMESPACE),
            deferred_help=True,
            stdout=output.standard_output(sys.stdout),
        )

    def print_help_if_requested(self) -> None:
        """Print the options and all commands, and exit, if that is asked for."""
        if self.options.deferred_help:
            self.parser.print_help(self.stdout)
            self.stdout.write(command_groups.listing(self))
            raise SystemExit(0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    :param argv: arguments without the program's name; None for the process's
    :returns: what the command ended with; 2 for wrong usage; 130 if it was interrupted
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Without a command cliff would start an interactive prompt; its list is not ours.
    if arguments in ([], ["help"]):
        arguments = ["--help"]
    try:
        status = Shell().run(arguments)
    except KeyboardInterrupt:
        status = output.SIGINT_EXIT
    except SystemExit as exc:
        # Of argparse: after --help and --version, or for wrong usage.
        status = int(exc.code or 0)
    return output.flush(status)
