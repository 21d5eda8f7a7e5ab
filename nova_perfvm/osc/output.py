# SPDX-License-Identifier: Apache-2.0
"""Where what commands print goes, and what to do when it does not arrive."""

from __future__ import annotations

import os
import sys

# As a shell says it of a process that SIGPIPE ended, and cliff of its commands.
SIGPIPE_EXIT = 128 + 13


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
