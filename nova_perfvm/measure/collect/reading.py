# SPDX-License-Identifier: Apache-2.0
"""What was collected, from the file that it was written to."""

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

# Of a host with hundreds of VMs.
MOST_BYTES: Final = KINDS["host"].most_bytes
# Of /proc/interrupts, before which a shell's prompt may stand.
_HEADER: Final = re.compile(r"^[ \t]*CPU\d+(?:[ \t]+CPU\d+)*[ \t]*$", re.MULTILINE)
_ROW: Final = re.compile(r"^[ \t]*\d+:(?:[ \t]+\d+)+[ \t]+\S", re.MULTILINE)


def script() -> str:
    """Return the source of the script that collects."""
    return Path(collector.__file__).read_text(encoding="utf-8")


def read(path: str, kind: Kind | None = None) -> Collected:
    """Read what ``host collect`` or ``guest collect`` wrote.

    :param path: of the JSON; - for standard input
    :param kind: what the machine has to be; None for either
    :raises DocumentError: with all mistakes in it
    :raises UnreadableFileError: when it cannot be read
    """
    return load_document([kind] if kind else collector.KINDS, Collected, path)


def read_guest(path: str) -> Collected:
    """Read what ``guest collect`` wrote, or a bare copy of ``/proc/interrupts``.

    A copy does not say of which guest it is, nor when it was made: the file's name
    and the present stand for them.

    :raises DocumentError: with all mistakes in it
    :raises UnreadableFileError: when it cannot be read
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
    """Return what JSON says of a machine.

    :param source: what to call the text in errors
    :raises DocumentError: with all mistakes
    """
    kinds = [kind] if kind else collector.KINDS
    return parse_document(kinds, Collected, text, source)
