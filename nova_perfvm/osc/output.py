# SPDX-License-Identifier: Apache-2.0
"""Output streams of commands: control characters escaped, write errors reported."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, Self, TextIO, cast

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.printable import one_line, printable

# 128 + signal: a shell's status of a killed process, and cliff's of its commands.
SIGINT_EXIT = 128 + 2
SIGPIPE_EXIT = 128 + 13


def escaping(stream: TextIO) -> TextIO:
    """Return a stream that escapes control characters and writes to `stream`."""
    return cast("TextIO", _Escaping(stream))


def standard_output(stream: TextIO) -> TextIO:
    """Return an escaping stream whose write errors become PerfVMError."""
    return cast("TextIO", _Output(stream))


class _Escaping:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._stream.write(printable(text))


class _Output(_Escaping):
    def write(self, text: str) -> int:
        with _reported():
            return super().write(text)

    def flush(self) -> None:
        with _reported():
            self._stream.flush()


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        discard()
        raise
    except (OSError, UnicodeEncodeError) as exc:
        discard()
        raise PerfVMError(lost(exc)) from exc


class ProgressLine:
    """A line of standard error that shows progress on a terminal.

    :param quiet_s: where standard error is no terminal, print a line at most every
        `quiet_s` seconds; None prints no lines there
    """

    def __init__(self, quiet_s: float | None = None) -> None:
        self._shown = sys.stderr.isatty()
        self._width = 0
        self._quiet_s = quiet_s
        self._last_s = -math.inf

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show `done` of `total` steps of the work `what`; 0 is an unknown total."""
        line = f"{what}: {done} of {total}" if total else f"{what}: {done}"
        line = printable(one_line(line))
        now = time.monotonic()
        quiet_s = self._quiet_s
        if not self._shown and quiet_s is not None and now - self._last_s >= quiet_s:
            self._last_s = now
            sys.stderr.write(f"{line}\n")
        self._write(f"{line:<{self._width}}")
        self._width = len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.clear()

    def clear(self) -> None:
        self._write(f"{'':<{self._width}}\r")

    def _write(self, text: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()


def flush(status: int) -> int:
    """Flush standard output at the end of the process.

    :param status: the exit status if all output can be written
    :returns: the exit status
    """
    if sys.stdout.closed:
        # The pager of a command's help closed it.
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
    return f"cannot write the output: {getattr(cause, 'strerror', None) or cause}"


def discard() -> None:
    """Point standard output at /dev/null, so that Python's flush at exit succeeds."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.close(devnull)
