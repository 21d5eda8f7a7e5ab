# SPDX-License-Identifier: Apache-2.0
"""Elements of the pages: tables and lists, their text escaped."""

from collections.abc import Iterable, Sequence
from html import escape


def bullets(title: str, items: Iterable[str]) -> str:
    """Return a heading and a list; nothing of no items."""
    found = "".join(f"<li>{escape(item)}</li>\n" for item in items)
    return f"<h2>{escape(title)}</h2>\n<ul>{found}</ul>\n" if found else ""


def table(head: Iterable[str], rows: Iterable[Sequence[str]], label: str) -> str:
    """Return a table that scrolls, by keyboard, too, where it is too wide."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join(f"<tr>{''.join(cells)}</tr>\n" for cells in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f"<table><thead><tr>{titles}</tr></thead><tbody>\n{body}</tbody></table></div>\n"
    )


def cell(value: object) -> str:
    """Return a cell of a table."""
    return f"<td>{escape(str(value))}</td>"
