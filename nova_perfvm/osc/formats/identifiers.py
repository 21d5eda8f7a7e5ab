# SPDX-License-Identifier: Apache-2.0
"""Names of flavors as languages take them for the names of resources."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

_OTHER: Final = re.compile(r"[^A-Za-z0-9_]")
_FIRST_DIGITS: Final = 8


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return a distinct identifier for each of several distinct names.

    It is the name with an underscore for every other character: ``hp_20c_64g``.  Where
    an earlier name has taken that, and be it in capitals, some digits of the name's
    own SHA-256 are behind it.  A tool takes another identifier for another resource, so
    names that are added behind the others change none.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = _OTHER.sub("_", name)
        if not plain or plain[0].isdigit():
            plain = f"_{plain}"
        identifier, digits = plain, _FIRST_DIGITS
        digest = hashlib.sha256(name.encode()).hexdigest()
        while identifier.lower() in taken:
            identifier = f"{plain}_{digest[:digits]}"
            digits += 1
        taken.add(identifier.lower())
        found[name] = identifier
    return found
