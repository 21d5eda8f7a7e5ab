# SPDX-License-Identifier: Apache-2.0
"""The console script ``nova-perfvm``: everything that needs no cloud."""

from __future__ import annotations

import importlib.metadata
import sys
from typing import TYPE_CHECKING, Final

from cliff.app import App
from cliff.commandmanager import CommandManager

from nova_perfvm.osc import output

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME: Final = "nova-perfvm"
NAMESPACE: Final = "nova_perfvm.cli"
# As a shell says it of a process that SIGINT ended.
_INTERRUPTED: Final = 130


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
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    :param argv: arguments without the program's name; None for the process's
    :returns: 0; 1 for an error, printed on stderr; 2 for wrong usage; 130 if it was
        interrupted
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Without a command cliff would start an interactive prompt, for which six
    # commands are no reason.
    try:
        status = Shell().run(arguments or ["--help"])
    except KeyboardInterrupt:
        status = _INTERRUPTED
    return output.flush(status)
