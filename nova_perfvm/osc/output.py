# SPDX-License-Identifier: Apache-2.0
"""What commands print: cleaned, and what to do when it does not arrive."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TextIO, cast

from cliff.command import Command

from nova_perfvm.printable import printable

if TYPE_CHECKING:
    import argparse

# As a shell says it of a process that SIGPIPE ended, and cliff of its commands.
SIGPIPE_EXIT = 128 + 13


class PrintableCommand(Command):
    """A command that prints names, and nothing in them that a terminal acts on.

    Every command is one, whatever its format.
    """

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command with streams that escape."""
        app = self.app
        kept = app.stdout, app.stderr
        app.stdout, app.stderr = map(escaping, kept)
        try:
            return super().run(parsed_args)
        finally:
            app.stdout, app.stderr = kept


def escaping(stream: TextIO) -> TextIO:
    """Return a stream that writes to another one what prints."""
    return cast("TextIO", _Escaping(stream))


class _Escaping:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._stream.write(printable(text))


def flush(status: int) -> int:
    """Print what is still buffered, as the last that a process does.

    :param status: its exit status, if that arrives
    :returns: its exit status
    """
    if sys.stdout.closed:
        # By the pager of a command's help.
        return status
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard()
        return SIGPIPE_EXIT
    except OSError as exc:
        discard()
        sys.stderr.write(f"{lost(exc)}\n")
        return status or 1
    return status


def lost(cause: Exception) -> str:
    """Report that the output did not arrive."""
    return f"cannot write the output: {cause}"


def discard() -> None:
    """Send what is still buffered nowhere, or Python tries once more at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.close(devnull)
