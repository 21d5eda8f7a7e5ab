# SPDX-License-Identifier: Apache-2.0
"""Files in a directory: all of them or none, and nothing overwritten unasked."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from nova_perfvm import textfile
from nova_perfvm.generate.hosts.errors import HostConfigError


def write_files(
    directory: Path, files: Mapping[str, str], known: Iterable[str], *, force: bool
) -> None:
    """Write files into a directory, which is made if it is missing.

    A name may be a path, whose directories are made as well.  All files are complete on
    disk, under other names, before the first appears under its own.  If one cannot
    appear, the directory is left as it was.

    :param known: every name that an earlier run may have left; with ``force``
        those that are not among the files are removed, since a leftover
        provider.yaml would promise slots that the host no longer has
    :param force: whether to replace files that are there
    :raises HostConfigError: when a file is there, or one cannot be written
    """
    try:
        _make(directory)
        present = [name for name in known if os.path.lexists(directory / name)]
        if present and not force:
            raise HostConfigError(
                f"{directory} already has {', '.join(present)}: nothing was written; "
                "use --force to replace them, or another --output-dir"
            )
        folders = [name for name in present if _is_directory(directory / name)]
        if folders:
            raise HostConfigError(
                f"in {directory}, {', '.join(folders)} is a directory: nothing was "
                "written; move it away, or use another --output-dir"
            )
        with tempfile.TemporaryDirectory(prefix=".perfvm-", dir=directory) as scratch:
            new, before = Path(scratch) / "new", Path(scratch) / "before"
            _write(new, files)
            with contextlib.ExitStack() as undo:
                for folder in _missing(directory, files):
                    folder.mkdir()
                    undo.callback(folder.rmdir)
                for name in present:
                    kept = before / name
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(directory / name, kept, follow_symlinks=False)
                    undo.callback(kept.replace, directory / name)
                for name in files:
                    _appear(new / name, directory / name, force=force)
                    if name not in present:
                        undo.callback((directory / name).unlink)
                for name in present:
                    if name not in files:
                        (directory / name).unlink()
                undo.pop_all()
    except OSError as exc:
        reason = exc.strerror or exc
        raise HostConfigError(f"cannot write to {directory}: {reason}") from exc


def _make(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise HostConfigError(f"cannot write to {directory}: a file; name a directory")
    directory.mkdir(parents=True, exist_ok=True)


def _write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        textfile.write(directory / name, text)


def _missing(directory: Path, names: Iterable[str]) -> list[Path]:
    """Return the directories that names want below one, outermost first."""
    wanted = {
        directory / parent
        for name in names
        for parent in Path(name).parents
        if not (directory / parent).is_dir()
    }
    return sorted(wanted)


def _is_directory(path: Path) -> bool:
    """Return whether a rename to a path fails; one to a link replaces the link."""
    return path.is_dir() and not path.is_symlink()


def _appear(path: Path, target: Path, *, force: bool) -> None:
    """Give a complete file its name."""
    if force:
        path.replace(target)
        return
    # Unlike a rename, a link fails where another run was faster.
    target.hardlink_to(path)
