# SPDX-License-Identifier: Apache-2.0
"""The map of a cloud as a self-contained HTML page, drawn by its own script."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator

from nova_perfvm.diagnose.cloud_map import Document
from nova_perfvm.generate.formats.document import with_texts
from nova_perfvm.pages import page_source, render_page
from nova_perfvm.printable import printable


def html(document: Document) -> str:
    """Return the page of a document of :func:`nova_perfvm.diagnose.cloud_map.document`.

    The page's content security policy allows only this script, by its hash.
    """
    # The page's script inserts the texts, so Jinja does not escape them.
    shown = with_texts(document, printable)
    script = page_source("map.js")
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
    """Yield the free slots, all slots and the name of each pinned class."""
    for number, (name, pinned) in enumerate(document["classes"]):
        if pinned:
            slots = [s for h in document["hosts"] for s in h["slots"] if s[0] == number]
            yield sum(s[3] for s in slots), sum(s[1] for s in slots), name
