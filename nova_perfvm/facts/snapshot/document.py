# SPDX-License-Identifier: Apache-2.0
"""Snapshots as JSON: keys are names of fields; fields with defaults are left out."""

from nova_perfvm.documents.document import dump_document, load_document, parse_document
from nova_perfvm.facts.snapshot.model import Snapshot


def dumps(snapshot: Snapshot) -> str:
    """Return the JSON of a snapshot."""
    return dump_document("snapshot", snapshot)


def loads(text: str, source: str = "the snapshot") -> Snapshot:
    """Return the snapshot that JSON describes.

    :param source: name of the text in errors
    :raises DocumentError: the text has mistakes; the error lists all of them
    """
    return parse_document("snapshot", Snapshot, text, source)


def load(path: str) -> Snapshot:
    """Read a snapshot, from standard input if the path is ``-``; see :func:`loads`.

    :raises UnreadableFileError: the file cannot be read
    """
    return load_document("snapshot", Snapshot, path)
