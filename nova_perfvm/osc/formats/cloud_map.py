# SPDX-License-Identifier: Apache-2.0
"""A cloud as one HTML page that needs nothing else, drawn by a script inside it."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from nova_perfvm.diagnose.cloud_map import Document
from nova_perfvm.pages import page_source, render_page
from nova_perfvm.printable import printable


def html(document: Document) -> str:
    """Return the page of what :func:`nova_perfvm.diagnose.cloud_map.document` has.

    Its script alone runs, known by its hash.
    """
    shown, script = _printable(document), page_source("map.js")
    return render_page(
        "map.html",
        map=shown,
        servers=sum(len(host["servers"]) for host in shown["hosts"]),
        slots=list(_free_slots(shown)),
        severities=Counter(finding[0] for finding in shown["findings"]).items(),
        script=script,
        script_digest=base64.b64encode(
            hashlib.sha256(script.encode()).digest()
        ).decode(),
    )


def _free_slots(document: Document) -> Iterator[tuple[int, int, str]]:
    """Yield how many slots of each pinned class are free, of how many."""
    for number, (name, pinned) in enumerate(document["classes"]):
        if pinned:
            slots = [s for h in document["hosts"] for s in h["slots"] if s[0] == number]
            yield sum(s[3] for s in slots), sum(s[1] for s in slots), name


def _printable(value: Any) -> Any:
    """Return a document whose texts, but none of its keys, are fit to be shown.

    The script shows them, not the template.
    """
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {key: _printable(found) for key, found in value.items()}
    if isinstance(value, (list, tuple)):
        return [_printable(found) for found in value]
    return value
