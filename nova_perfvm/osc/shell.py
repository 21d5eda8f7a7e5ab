# SPDX-License-Identifier: Apache-2.0
"""The console script ``nova-perfvm``: all commands that need no cloud."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import TYPE_CHECKING, Final

from cliff.app import App

from nova_perfvm.osc import commands, output

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME: Final = "nova-perfvm"


class Shell(App):
    """The cliff application, whose commands are those without a cloud."""

    NAME = NAME

    def __init__(self) -> None:
        super().__init__(
            description="VM classes for Nova: policy, flavors and images, offline",
            version=importlib.metadata.version(NAME),
            command_manager=commands.offline(),
            deferred_help=True,
            stdout=output.standard_output(sys.stdout),
        )

    def print_help_if_requested(self) -> None:
        """Print the options and all commands, and exit, for ``--help``."""
        if self.options.deferred_help:
            self.parser.print_help(self.stdout)
            self.stdout.write(commands.listing(self))
            raise SystemExit(0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    :param argv: arguments without the program's name; None for the process's
    :returns: the command's exit status; 2 for wrong usage; 130 after Ctrl-C
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Without a command cliff would start an interactive prompt, and its own list of
    # commands has no groups.
    if arguments in ([], ["help"]):
        arguments = ["--help"]
    try:
        status = Shell().run(arguments)
    except KeyboardInterrupt:
        status = output.SIGINT_EXIT
    except SystemExit as exc:
        # argparse raises it after --help and --version, or for wrong usage.
        status = int(exc.code or 0)
    return output.flush(status)
