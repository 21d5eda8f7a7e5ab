# SPDX-License-Identifier: Apache-2.0
"""Text that others wrote, such as an image's name, made fit to be shown.

A terminal acts on control characters, HTML and XML cannot carry them, and
formatting characters turn the reading direction or hide what stands there.
"""

from __future__ import annotations

import json
import unicodedata


def printable(text: str) -> str:
    r"""Return a text with an escape for all that does not print but ``\n`` and ``\t``.

    The escapes are those of JSON, as in ``\u001b[2J``, so that JSON which went
    through this says the same as before.
    """
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """Return a text with its line ends escaped, such as a name within a line."""
    return text.replace("\n", r"\n")


def _escaped(character: str) -> str:
    # To Python no blank prints but the common one.
    if character.isprintable() or unicodedata.category(character) == "Zs":
        return character
    return json.dumps(character)[1:-1]
