# SPDX-License-Identifier: Apache-2.0
"""Read and write the text files that operators name: whole files only."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from nova_perfvm.documents.mistakes import UnreadableFileError
from nova_perfvm.exceptions import PerfVMError

_MIB: Final = 1024 * 1024
# A limit, as /dev/zero has no end; far above any file that people write.
MOST_BYTES: Final = 16 * _MIB


def read(
    path: str | Path, most_bytes: int = MOST_BYTES, expected: str = "the right file"
) -> str:
    """Return the text of a UTF-8 file, every line end as a newline.

    :param path: path of the file; ``-`` for standard input
    :param expected: the right file in words, for the message
    :raises UnreadableFileError: the file cannot be read, is not UTF-8, or is longer
        than ``most_bytes``
    """
    name = str(path)
    if not name:
        # Path("") is the current directory.
        raise UnreadableFileError("''", "an empty path: name a file")
    if name == "-":
        name, data = "standard input", sys.stdin.buffer.read(most_bytes + 1)
    else:
        with opened(path) as file:
            data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        mib = most_bytes // _MIB
        size = f"{mib} MiB" if mib else f"{most_bytes} bytes"
        raise UnreadableFileError(name, f"longer than {size}: is it {expected}?")
    try:
        return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8").read()
    except UnicodeDecodeError as exc:
        where = f"{exc.reason} at byte {exc.start}"
        reason = f"not UTF-8 text: {where}: is it {expected}?"
        raise UnreadableFileError(name, reason) from exc


@contextlib.contextmanager
def opened(path: str | Path) -> Iterator[io.BufferedReader]:
    """Open a file for reading bytes.

    :raises UnreadableFileError: the file cannot be opened, or a read in the block fails
    """
    try:
        with Path(path).open("rb") as file:
            yield file
    except (OSError, ValueError) as exc:
        # The ValueError for a path with a NUL has no strerror.
        reason = getattr(exc, "strerror", None) or str(exc)
        raise UnreadableFileError(str(path), reason) from exc


def write(target: Path | int, text: str) -> None:
    """Write a text to a path or a file descriptor, and sync it to the disk."""
    with open(target, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def replace(path: str, text: str, *, private: bool = False) -> None:
    """Replace a file's content as a whole, or leave the existing file untouched.

    The file behind a symbolic link is replaced, not the link.  Text is appended to a
    path that is no regular file, or is the process's standard output or error.

    :param private: whether to allow only the owner to read the file; otherwise the
        file keeps its permissions
    :raises PerfVMError: the file cannot be written
    """
    target = Path(path)
    try:
        # The kernel refuses another user's link in /tmp here, before it is resolved.
        if target.exists() and (not target.is_file() or _is_output(target)):
            with target.open("a", encoding="utf-8") as file:
                file.write(text)
            return
        target = Path(os.path.realpath(target))
        handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
        scratch = Path(name)
        try:
            write(handle, text)
            if not private:
                scratch.chmod(_mode(target))
            scratch.replace(target)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
    except OSError as exc:
        raise PerfVMError(f"cannot write {path}: {exc.strerror or exc}") from exc


@contextlib.contextmanager
def exclusively(path: str) -> Iterator[None]:
    """Hold a lock file beside a file, so that no other process works on the file.

    :raises PerfVMError: another process holds the lock, or it cannot be made
    """
    target = Path(path)
    lock = target.with_name(f".{target.name}.lock")
    with contextlib.ExitStack() as stack:
        try:
            mine = locks(stack.enter_context(open_lock(lock)), lock)
        except OSError as exc:
            raise PerfVMError(f"cannot write {lock}: {exc.strerror or exc}") from exc
        if not mine:
            raise PerfVMError(
                f"another process is working on {path}: wait until it has ended"
            )
        stack.callback(lock.unlink, missing_ok=True)
        yield


def open_lock(path: Path) -> BinaryIO:
    """Open a lock file for appending; create it if it does not exist.

    A symbolic link is refused: in directories such as /tmp another user could place it.

    :raises OSError: the file cannot be opened, or is a symbolic link
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        return open(os.open(path, flags, 0o666), "ab")  # noqa: PTH123 - a descriptor
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            reason = "a symbolic link, which is not followed: remove it"
            raise PermissionError(exc.errno, reason, str(path)) from None
        raise


def locks(file: BinaryIO, path: Path) -> bool:
    """Lock an open file; return whether the lock is held on the file at ``path``.

    False if another process holds the lock, or has removed or replaced the file.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The previous holder removes the lock file; a third process may have made one.
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _is_output(target: Path) -> bool:
    """Return whether a path names this process's output, as /dev/stdout does."""
    for descriptor in (1, 2):
        # A closed descriptor is no file.
        with contextlib.suppress(OSError):
            if os.path.samestat(target.stat(), os.fstat(descriptor)):
                return True
    return False


def _mode(target: Path) -> int:
    """Return the permissions that the file has, or that open() would give a new one."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
