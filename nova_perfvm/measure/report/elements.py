# SPDX-License-Identifier: Apache-2.0
"""Elements of the pages: tables, lists, times, their text escaped."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
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


def counts(items: Iterable[tuple[int, str, str]]) -> str:
    """Return tiles, each a number and what there are so many of.

    :param items: the number, a class of the stylesheet, and the word; nothing is
        coloured of which there is none
    """
    found = "".join(
        f'<li><b class="{look if number else "unknown"}">{number}</b>'
        f"{escape(word)}</li>"
        for number, look, word in items
    )
    return f'<ul class="counts">{found}</ul>\n'


def date_words(iso: str) -> str:
    """Return a time as people write it, in UTC; as it is, if it is no ISO 8601."""
    try:
        when = datetime.fromisoformat(iso).astimezone(UTC)
    except ValueError:
        return iso
    return f"{when:%-d %b %Y, %H:%M} UTC"


def moment(iso: str) -> str:
    """Return a time in words; a script of the page finds it, too."""
    return f'<time datetime="{escape(iso)}">{escape(date_words(iso))}</time>'


def digest(sha256: str) -> str:
    """Return the beginning of a hash; all of it is shown where the mouse rests."""
    return f'<abbr title="SHA-256 {escape(sha256)}">{escape(sha256[:8])}</abbr>'


def sentence(text: str) -> str:
    """Return a cell of a table that is never narrow."""
    return f'<td class="words">{escape(text)}</td>'


def cell(value: object) -> str:
    """Return a cell of a table."""
    return f"<td>{escape(str(value))}</td>"
