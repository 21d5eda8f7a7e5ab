# SPDX-License-Identifier: Apache-2.0
"""The state directory: whose it is, who works on it, and how it goes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.layout import Layout

# What the lock file says.  Its name alone is no sign: dpkg's directory has one.
MARK: Final = b"nova-perfvm sandbox: its wipe removes all of this directory\n"

# The kernel takes no longer address of a socket.
_MAX_SOCKET_BYTES: Final = 107


def check_path(layout: Layout) -> None:
    """Make sure that sockets can be made in the directory.

    :raises SandboxError: when its path is too long
    """
    longest = max(len(os.fsencode(socket)) for socket in layout.sockets)
    if longest > _MAX_SOCKET_BYTES:
        most = _MAX_SOCKET_BYTES - longest + len(os.fsencode(layout.directory))
        raise SandboxError(
            f"{layout.directory} is too long for the addresses of the sockets in it: "
            f"expected at most {most} bytes; use another --directory"
        )


@contextlib.contextmanager
def claim(layout: Layout) -> Iterator[None]:
    """Keep other commands from the sandbox meanwhile; make its directory.

    :raises SandboxError: when another command works on it, or something in the
        directory is not the sandbox's
    """
    directory = layout.directory
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(layout):
            raise SandboxError(
                f"{directory} has other files in it: expected an empty directory, or "
                "one that nova-perfvm sandbox up has made; use another --directory"
            )
        with layout.lock.open("ab") as lock:
            if not _locked(lock, layout.lock):
                raise SandboxError(
                    f"another nova-perfvm sandbox command works on {directory}"
                )
            if os.fstat(lock.fileno()).st_size == 0:
                lock.write(MARK)
                lock.flush()
            yield
    except PermissionError as exc:
        raise SandboxError(f"{exc.filename or directory}: {exc.strerror}") from exc


def clear(layout: Layout, *, environment: bool, tell: Callable[[str], None]) -> None:
    """Remove what is in the directory, the sandbox's mark last.

    Wherever it stops, what is left can be started, stopped and wiped.

    :param environment: remove OpenStack's environment, too
    :param tell: called with where a symbolic link led: only the link is removed
    :raises SandboxError: when something cannot be removed
    """
    # Settings go with the data that they are for, and before what goes with them.
    first = [layout.data, layout.settings]
    kept = {layout.lock, layout.wiped, *([] if environment else [layout.environment])}
    try:
        discard(layout)
        others = set(layout.directory.iterdir()) - kept - set(first)
        layout.wiped.mkdir()
        for path in (*first, *sorted(others)):
            # At one stroke: half a database would be taken for a whole one.
            with contextlib.suppress(FileNotFoundError):
                target = os.path.realpath(path) if path.is_symlink() else None
                path.rename(layout.wiped / path.name)
                if target is not None:
                    tell(f"{path} led to {target}, which stays: remove it yourself")
        discard(layout)
        if environment or not layout.environment.exists():
            layout.lock.unlink()
    except OSError as exc:
        raise SandboxError(
            f"cannot remove {exc.filename or layout.directory}: {exc.strerror}; see to "
            "that, and repeat nova-perfvm sandbox wipe"
        ) from exc


def discard(layout: Layout) -> None:
    """Remove what a wipe that was interrupted has left."""
    if layout.wiped.exists():
        shutil.rmtree(layout.wiped)


def _locked(lock: IO[bytes], path: Path) -> bool:
    """Lock a file that was opened, if nobody has; tell whether it was done."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # A wipe may have removed it since.
        return os.path.samestat(os.fstat(lock.fileno()), path.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _is_ours(layout: Layout) -> bool:
    """Tell whether the directory is empty, or what is in it a sandbox's."""
    names = {path.name for path in layout.directory.iterdir()}
    if layout.lock.is_file() and layout.lock.stat().st_size:
        return layout.lock.read_bytes() == MARK
    # A command that ended before it could write the mark.
    names.discard(layout.lock.name)
    # Another sandbox has made it there.
    if names == {layout.environment.name}:
        return Environment(layout.environment).is_ours
    return not names
