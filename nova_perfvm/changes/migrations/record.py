# SPDX-License-Identifier: Apache-2.0
"""The record of a plan that is carried out: JSON from which a later run continues."""

from __future__ import annotations

from nova_perfvm.changes.migrations.execution import Execution
from nova_perfvm.documents.document import dump_document, load_document, parse_document


def dumps(execution: Execution) -> str:
    return dump_document("plan-record", execution, whole=True)


def loads(text: str, source: str = "the record") -> Execution:
    """Return the execution that JSON describes.

    :param source: the name of the text in errors
    :raises DocumentError: with all mistakes
    """
    return parse_document("plan-record", Execution, text, source)


def read(path: str) -> Execution:
    """Read a record; see :func:`loads`.

    :raises UnreadableFileError: when the file cannot be read
    """
    return load_document("plan-record", Execution, path)
