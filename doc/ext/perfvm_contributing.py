# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.rst as one of these pages.

On a forge it is read by itself: it names files by their paths in the tree.  Here what
is a page becomes a link to it, and pictures are found from the top of the pages.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx


def as_page(text: str) -> str:
    """Return a text at the top of the tree as one that a page may include.

    Names of files in tables stay: they are what the tables list.
    """
    text = re.sub(r"``doc/source/([\w/-]+)\.rst``(?! {2})", r":doc:`/\1`", text)
    return text.replace(".. image:: doc/source/", ".. image:: /")


def _read(_app: Sphinx, path: Path, _page: str, content: list[str]) -> None:
    if path.name == "CONTRIBUTING.rst":
        content[0] = as_page(content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Change the text when a page includes it."""
    app.connect("include-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
