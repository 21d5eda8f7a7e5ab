# SPDX-License-Identifier: Apache-2.0
"""Write files into a directory: all or none, replacing none without ``force``."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from nova_perfvm.documents import textfile
from nova_perfvm.generate.hosts.errors import HostConfigError


def write_files(
    directory: Path, files: Mapping[str, str], known: Iterable[str], *, force: bool
) -> None:
    """Write files into a directory, creating it and its subdirectories.

    All files are complete on disk under temporary names before the first is renamed.

    :param files: texts by path relative to `directory`
    :param known: all paths that an earlier run may have written; with ``force`` those
        that are not in `files` are removed, since a leftover provider.yaml would
        promise slots that the host no longer has
    :param force: whether to replace existing files
    :raises HostConfigError: when a file exists, or cannot be written
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        present = [name for name in known if os.path.lexists(directory / name)]
        folders = [name for name in present if _is_directory(directory / name)]
        if folders or (present and not force):
            raise HostConfigError(
                f"{directory} already has {', '.join(folders or present)}: nothing was "
                "written; use --force to replace files, move directories away, or use "
                "another --output-dir"
            )
        with tempfile.TemporaryDirectory(prefix=".perfvm-", dir=directory) as made:
            scratch = Path(made)
            for name, text in files.items():
                (scratch / name).parent.mkdir(parents=True, exist_ok=True)
                textfile.write(scratch / name, text)
            for name in files:
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
            for name in files:
                (scratch / name).replace(directory / name)
        for name in present:
            if name not in files:
                (directory / name).unlink()
    except OSError as exc:
        reason = exc.strerror or exc
        raise HostConfigError(f"cannot write to {directory}: {reason}") from exc


def _is_directory(path: Path) -> bool:
    """Return whether a path is a directory, so that a rename to it fails.

    A rename to a symbolic link replaces the link.
    """
    return path.is_dir() and not path.is_symlink()
