# SPDX-License-Identifier: Apache-2.0
"""The state directory: its mark, its lock, and its removal."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Final

from nova_perfvm.documents import textfile
from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.layout import Layout

# Content of the lock file, which marks a sandbox's directory.  The name "lock" alone
# would not: dpkg's directory has such a file, too.
MARK: Final = b"nova-perfvm sandbox: its wipe removes all of this directory\n"


@contextlib.contextmanager
def claim(layout: Layout) -> Iterator[None]:
    """Lock the sandbox against other commands; create its directory.

    :raises SandboxError: when another command works on the sandbox, or the directory
        has other files
    """
    directory = layout.directory
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(layout):
            raise SandboxError(
                f"{directory} has other files in it: expected an empty directory, or a "
                "directory of nova-perfvm sandbox up; use another --directory"
            )
        with textfile.open_lock(layout.lock) as lock:
            if not textfile.locks(lock, layout.lock):
                raise SandboxError(
                    f"another nova-perfvm sandbox command works on {directory}"
                )
            if os.fstat(lock.fileno()).st_size == 0:
                lock.write(MARK)
                lock.flush()
            yield
    except PermissionError as exc:
        raise SandboxError(f"{exc.filename or directory}: {exc.strerror}") from exc


def clear(layout: Layout) -> None:
    """Remove the directory's content, the settings first and the mark last.

    After an interruption at any point, up, down and wipe still work.

    :raises SandboxError: when a file cannot be removed
    """
    try:
        layout.settings.unlink(missing_ok=True)
        for path in set(layout.directory.iterdir()) - {layout.lock}:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        layout.lock.unlink()
    except OSError as exc:
        raise SandboxError(
            f"cannot remove {exc.filename or layout.directory}: {exc.strerror}; remove "
            "the cause, and repeat nova-perfvm sandbox wipe"
        ) from exc


def _is_ours(layout: Layout) -> bool:
    """Return whether the directory is empty, or a sandbox's."""
    names = {path.name for path in layout.directory.iterdir()}
    if layout.lock.is_file() and layout.lock.stat().st_size:
        return layout.lock.read_bytes() == MARK
    # An empty lock file: a command ended before it could write the mark.
    names.discard(layout.lock.name)
    # Another sandbox has created its environment here (--environment).
    if names == {layout.environment.name}:
        return Environment(layout.environment).is_ours
    return not names
