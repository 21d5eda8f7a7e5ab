# SPDX-License-Identifier: Apache-2.0
"""Make text that users wrote, such as an image's name, safe to show.

A terminal acts on control characters, HTML and XML cannot carry them, and formatting
characters can hide text or turn its direction.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

# The place in an error message of oslo.config.
_LOCATION: Final = re.compile(r"LocationInfo\(location=<.*?>, detail=(['\"])(.*?)\1\)")


def printable(text: str) -> str:
    r"""Return a text with unprintable characters escaped, except ``\n`` and ``\t``.

    The escapes are JSON's, as in ``\u001b[2J``, so that a JSON text keeps its meaning.
    """
    return "\n".join(map(_printable, text.split("\n")))


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(c if c == "\t" else _escaped(c) for c in line)


def one_line(text: str) -> str:
    """Return a text with its newlines escaped, to show it within a line."""
    return text.replace("\n", r"\n")


def first_line(exc: BaseException) -> str:
    """Return the first line of an error's message; its type if the message is empty."""
    return (_LOCATION.sub(r"\2", str(exc)).splitlines() or [type(exc).__name__])[0]


def some_of(names: Sequence[str], most: int) -> str:
    """Return the first `most` names, and the number of further names, in words."""
    more = len(names) - most
    shown = ", ".join(names[:most])
    return f"{shown} and {more} more" if more > 0 else shown


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun, such as ``1 host`` or ``2 hosts``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _escaped(character: str) -> str:
    # str.isprintable() is False for all blanks but the common one; keep blanks.
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return json.dumps(character)[1:-1]
