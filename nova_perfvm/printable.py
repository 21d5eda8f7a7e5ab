# SPDX-License-Identifier: Apache-2.0
"""Text that others wrote, such as an image's name, made fit to be shown.

A terminal acts on control characters, HTML and XML cannot carry them, and
formatting characters turn the reading direction or hide what stands there.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

# How errors of oslo.config name a file.
_LOCATION: Final = re.compile(r"LocationInfo\(location=<.*?>, detail=(['\"])(.*?)\1\)")


def printable(text: str) -> str:
    r"""Return a text with an escape for all that does not print but ``\n`` and ``\t``.

    The escapes are those of JSON, as in ``\u001b[2J``, so that JSON which went
    through this says the same as before.
    """
    return "\n".join(map(_printable, text.split("\n")))


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(c if c == "\t" else _escaped(c) for c in line)


def one_line(text: str) -> str:
    """Return a text with its line ends escaped, such as a name within a line."""
    return text.replace("\n", r"\n")


def first_line(exc: BaseException) -> str:
    """Return the first line of what an error says, its kind if it says nothing."""
    return (_LOCATION.sub(r"\2", str(exc)).splitlines() or [type(exc).__name__])[0]


def some_of(names: Sequence[str], most: int) -> str:
    """Return a list in words: the first few by name, and how many more there are."""
    more = len(names) - most
    shown = ", ".join(names[:most])
    return f"{shown} and {more} more" if more > 0 else shown


def number_of(count: int, noun: str) -> str:
    """Return a number of things in words, such as ``2 hosts``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _escaped(character: str) -> str:
    # To Python no blank prints but the common one.
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return json.dumps(character)[1:-1]
