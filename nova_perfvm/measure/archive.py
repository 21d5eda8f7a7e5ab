# SPDX-License-Identifier: Apache-2.0
"""Archives that others made: read in memory, never unpacked to a disk.

Of the names in them nothing is believed: one that leads elsewhere refuses the whole
archive.  What is no file or symbolic link is left out.
"""

import bz2
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final, Self, cast

from nova_perfvm.documents.mistakes import DocumentError, Mistake, UnreadableFileError

_MIB: Final = 1024 * 1024
# Of all that is kept; of all that it unpacks to; names.  More is a bomb, or no
# report of one machine.
MOST_KEPT: Final = 512 * _MIB
MOST_UNPACKED: Final = 16 * 1024 * _MIB
MOST_MEMBERS: Final = 1_000_000
# Of a header's long names, which are read whole before anybody sees them.
_MOST_HEADER: Final = _MIB
# As the kernel has it.
_MOST_PATH: Final = 4096
_MOST_PROBLEMS: Final = 20
_LONG_HEADERS: Final = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
# Behind the last member there is only padding.
_MOST_REST: Final = 64 * _MIB
COMPRESSED: Final[dict[bytes, Callable[[str], IO[bytes]]]] = {
    b"\x1f\x8b": lambda path: cast("IO[bytes]", gzip.open(path)),  # noqa: SIM115
    b"\xfd7zXZ\0": lambda path: cast("IO[bytes]", lzma.open(path)),  # noqa: SIM115
    b"BZh": lambda path: cast("IO[bytes]", bz2.open(path)),  # noqa: SIM115
}
# What tarfile and the decompressors raise for data that are none.
_BROKEN: Final = (
    *(tarfile.TarError, EOFError, zlib.error, lzma.LZMAError),
    *(gzip.BadGzipFile, ValueError, OverflowError, IndexError),
)


class _Header(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Refuse headers that would fill the memory."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in _LONG_HEADERS and found.size > _MOST_HEADER:
            raise tarfile.ReadError(f"a header of {found.size} bytes")
        return found


@dataclass
class Archive:
    """What an archive holds below its only directory at the top.

    :ivar top: name of that directory
    :ivar files: {path, such as "/proc/stat": data}
    :ivar links: {path: where a symbolic link leads to}
    :ivar directories: paths
    :ivar left_out: {path: why it is not in ``files``}
    :ivar times: {path: when the file was written, in seconds since 1970}
    """

    top: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)
    left_out: dict[str, str] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)


def read(source: str, most_bytes: Callable[[str], int]) -> Archive:
    """Return what is wanted of a tar archive, however it is compressed.

    :param most_bytes: of a path, how large it may be; 0 if it is not wanted
    :raises UnreadableFileError: when it is no archive, or too large
    :raises DocumentError: with the names that are refused
    """
    reader = _Reader(source, most_bytes)
    try:
        # As a stream: nothing is read twice, whatever the headers say.
        with (
            _unpacked(source) as file,
            tarfile.open(fileobj=file, mode="r|", tarinfo=_Header) as archive,
        ):
            for member in reader.limited(archive):
                reader.take(archive, member)
            # The checksum is at the end, and what ends too early is noticed there.
            if not reader.problems and len(file.read(_MOST_REST)) == _MOST_REST:
                raise tarfile.ReadError("more behind its end")
    except _BROKEN as exc:
        reason = f"no archive, or only a part of one ({exc}): copy it once more"
        raise UnreadableFileError(source, reason) from exc
    except OSError as exc:
        # bz2's errors are such, too.
        raise UnreadableFileError(source, exc.strerror or str(exc)) from exc
    if reader.problems:
        raise DocumentError(source, reader.problems)
    return reader.found


def _unpacked(source: str) -> IO[bytes]:
    """Open a file that may be compressed.

    By tarfile itself, one that ends too early would be taken for whole.
    """
    with Path(source).open("rb") as file:
        head = file.read(6)
    for magic, opener in COMPRESSED.items():
        if head.startswith(magic):
            return opener(source)
    return Path(source).open("rb")


class _Reader:
    def __init__(self, source: str, most_bytes: Callable[[str], int]) -> None:
        self.found = Archive()
        self.problems: list[Mistake] = []
        self._source = source
        self._most_bytes = most_bytes
        self._kept = 0

    def limited(self, archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
        """Yield the members, unless they are too many or too large."""
        unpacked = 0
        for number, member in enumerate(archive):
            # tarfile remembers them all.
            archive.members.clear()  # type: ignore[attr-defined]
            unpacked += max(0, member.size)
            if number >= MOST_MEMBERS:
                raise self._refused(f"more than {MOST_MEMBERS} files")
            if unpacked > MOST_UNPACKED:
                raise self._refused(f"more than {MOST_UNPACKED // _MIB} MiB unpacked")
            if len(self.problems) >= _MOST_PROBLEMS:
                return
            yield member

    def take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Keep a member, if it is wanted."""
        path = self._path(member.name)
        most_bytes = self._most_bytes(path) if path else 0
        if not most_bytes:
            return
        found = self.found
        # Whoever looks around has all directories above it in mind.
        self._keep(len(path) * path.count("/"))
        if member.isdir():
            found.directories.add(path)
        elif member.issym():
            self._keep(len(member.linkname))
            found.links[path] = member.linkname
        elif not member.isreg():
            found.left_out[path] = "it is no file in the archive"
        elif member.size > most_bytes:
            limit = f"{most_bytes // _MIB} MiB"
            found.left_out[path] = f"it is longer than {limit} in the archive"
        else:
            self._keep(member.size)
            data = archive.extractfile(member)
            found.files[path] = data.read() if data else b""
            found.times[path] = member.mtime

    def _path(self, name: str) -> str:
        """Return the path below the directory at the top, empty for that itself."""
        if len(name) > _MOST_PATH:
            self._mistake(f"{name[:100]}...", f"has more than {_MOST_PATH} characters")
            return ""
        parts = [part for part in name.split("/") if part not in {"", "."}]
        if name.startswith("/") or ".." in parts or "\0" in name:
            self._mistake(name, "leads out of the archive; in a report no name does")
            return ""
        if not parts:
            return ""
        if not self.found.top:
            self.found.top = parts[0]
        if parts[0] != self.found.top:
            where = f"{self.found.top}/, where all is in a report of one machine"
            self._mistake(name, f"is not in {where}")
            return ""
        return "".join(f"/{part}" for part in parts[1:])

    def _mistake(self, name: str, message: str) -> None:
        self.problems.append(
            Mistake((name,), f"{message}: take the archive as it was made")
        )

    def _keep(self, size: int) -> None:
        self._kept += size
        if self._kept > MOST_KEPT:
            raise self._refused(f"more than {MOST_KEPT // _MIB} MiB to look at")

    def _refused(self, what: str) -> UnreadableFileError:
        reason = f"{what}: is it a report of one machine?"
        return UnreadableFileError(self._source, reason)
