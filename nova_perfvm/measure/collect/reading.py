# SPDX-License-Identifier: Apache-2.0
"""Read the JSON files of ``host collect`` and ``guest collect``."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from nova_perfvm.documents.document import (
    KINDS,
    load_document,
    parse_document,
    read_text,
)
from nova_perfvm.documents.mistakes import DocumentError, Mistake
from nova_perfvm.measure.collect import collector
from nova_perfvm.measure.collect.collected import Collected, Kind

# Enough for a host with hundreds of VMs.
MOST_BYTES: Final = KINDS["host"].most_bytes
# The first line of /proc/interrupts, possibly behind a pasted shell prompt.
_HEADER: Final = re.compile(r"^[ \t]*CPU\d+(?:[ \t]+CPU\d+)*[ \t]*$", re.MULTILINE)
_ROW: Final = re.compile(r"^[ \t]*\d+:(?:[ \t]+\d+)+[ \t]+\S", re.MULTILINE)


def script() -> str:
    """Return the source of the collector, a script for other machines."""
    return Path(collector.__file__).read_text(encoding="utf-8")


def read(path: str, kind: Kind | None = None) -> Collected:
    """Read a file of ``host collect`` or ``guest collect``.

    :param path: path of the JSON; - for standard input
    :param kind: the expected kind of machine; None for either
    :raises DocumentError: with all mistakes of the file
    :raises UnreadableFileError: when the file cannot be read
    """
    return load_document([kind] if kind else collector.KINDS, Collected, path)


def read_guest(path: str) -> Collected:
    """Read a file of ``guest collect``, or a bare copy of ``/proc/interrupts``.

    A copy has neither hostname nor time: the file's name and the current time stand
    in.

    :raises DocumentError: with all mistakes of the file
    :raises UnreadableFileError: when the file cannot be read
    """
    text, source = read_text(["guest"], path)
    tables = list(_HEADER.finditer(text))
    if not tables and not _ROW.search(text):
        return loads(text, source, "guest")
    if len(tables) != 1:
        found = f"{len(tables)} lines name CPUs" if tables else "no line names the CPUs"
        message = f"a copy of /proc/interrupts in which {found}: copy one table, with "
        message += "its first line (CPU0 CPU1 ...), and without lines that are wrapped"
        raise DocumentError(source, [Mistake((), message)], "guest")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    table = text[tables[0].start() :]
    return Collected("guest", source, now, files={"/proc/interrupts": table})


def loads(text: str, source: str, kind: Kind | None = None) -> Collected:
    """Parse the JSON of a collected machine.

    :param source: name of the text in errors
    :raises DocumentError: with all mistakes of the text
    """
    kinds = [kind] if kind else collector.KINDS
    return parse_document(kinds, Collected, text, source)
