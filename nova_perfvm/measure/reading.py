# SPDX-License-Identifier: Apache-2.0
"""What was collected, from the file that it was written to."""

from pathlib import Path
from typing import Final

from nova_perfvm.documents import textfile
from nova_perfvm.documents.document import KINDS, load_document, parse_document
from nova_perfvm.documents.mistakes import UnreadableFileError
from nova_perfvm.measure import archive, collector, sosreport
from nova_perfvm.measure.collected import Collected, Kind

# Of a host with hundreds of VMs.
MOST_BYTES: Final = KINDS["host"].most_bytes
_JSON: Final = f"/{collector.JSON_NAME}"
_TAR, _TAR_AT = b"ustar", 257


def read(path: str, kind: Kind | None = None) -> Collected:
    """Read what ``host collect`` or ``guest collect`` wrote, or a sosreport.

    :param path: of the JSON or the archive; - for JSON on standard input
    :param kind: what the machine has to be; a sosreport does not say it, and is
        taken for that
    :raises DocumentError: with all mistakes in it
    :raises DocumentError: with the names in an archive that are refused
    :raises UnreadableFileError: when it cannot be read
    """
    if path != "-" and _is_archive(path):
        return _from_archive(path, kind)
    return load_document([kind] if kind else collector.KINDS, Collected, path)


def loads(text: str, source: str, kind: Kind | None = None) -> Collected:
    """Return what JSON says of a machine.

    :param source: what to call the text in errors
    :raises DocumentError: with all mistakes
    """
    kinds = [kind] if kind else collector.KINDS
    return parse_document(kinds, Collected, text, source)


def _is_archive(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            head = file.read(_TAR_AT + len(_TAR))
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or str(exc)
        raise UnreadableFileError(path, reason) from exc
    return head.startswith(tuple(archive.COMPRESSED)) or head[_TAR_AT:] == _TAR


def _from_archive(path: str, kind: Kind | None) -> Collected:
    found = archive.read(path, _most_bytes)
    if _JSON in found.files:
        source = f"{path} ({found.top}{_JSON})"
        text = textfile.decode(found.files[_JSON], source, MOST_BYTES)
        return loads(text, source, kind)
    report = sosreport.SosReport(found)
    if not report.has_commands:
        raise UnreadableFileError(
            path,
            f"neither {collector.JSON_NAME} nor sos_commands in it: expected an "
            "archive of host collect or guest collect, or a sosreport",
        )
    # There is one look only.
    document = collector.collect(kind or report.kind, 0, report)
    return parse_document(collector.KINDS, Collected, collector.dumps(document), path)


def _most_bytes(path: str) -> int:
    return MOST_BYTES if path == _JSON else sosreport.most_bytes(path)
