# SPDX-License-Identifier: Apache-2.0
"""Text files that operators name: read whole, or refused with the reason."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

from nova_perfvm.exceptions import UnreadableFileError

_MIB: Final = 1024 * 1024
# Far more than any file that people or their tools write; /dev/zero has no end.
MOST_BYTES: Final = 16 * _MIB


def read(path: str | Path, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of a file in UTF-8, its line ends as newlines.

    :raises UnreadableFileError: when it cannot be read, is no such text, or is
        longer
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(most_bytes + 1)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        absent = isinstance(exc, FileNotFoundError)
        raise UnreadableFileError(str(path), reason, absent=absent) from exc
    except ValueError as exc:
        # A path with a NUL.
        raise UnreadableFileError(str(path), str(exc)) from exc
    return decode(data, str(path), most_bytes)


def decode(data: bytes, name: str, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of what was read, as :func:`read` does.

    :param name: what to call it in errors
    :raises UnreadableFileError: when it is no such text, or longer
    """
    if len(data) > most_bytes:
        size = f"{most_bytes // _MIB} MiB" if most_bytes >= _MIB else most_bytes
        raise UnreadableFileError(name, f"longer than {size}: is it the right file?")
    try:
        return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8").read()
    except UnicodeDecodeError as exc:
        reason = f"no UTF-8 text: {exc.reason} at byte {exc.start}"
        raise UnreadableFileError(name, reason) from exc
