# SPDX-License-Identifier: Apache-2.0
"""Commands that there are not: what to say of them."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from nova_perfvm.printable import one_line

# What argparse ends with for wrong arguments.
STATUS: Final = 2
_NEAREST: Final = 3


def message(program: str, argv: Sequence[str], known: Iterable[str]) -> str:
    """Name the commands that are most like one that there is not.

    :param argv: the command, and its arguments
    """
    words = list(itertools.takewhile(lambda word: not word.startswith("-"), argv))
    nearest = sorted(known, key=lambda name: (-_likeness(words, name), name))
    return (
        f"{program}: {one_line(' '.join(words))!r} is no command; the nearest: "
        f"{', '.join(nearest[:_NEAREST])}; all: {program} --help"
    )


def _likeness(words: Sequence[str], name: str) -> float:
    """Compare as many words as a command's name has."""
    said = " ".join(words[: name.count(" ") + 1])
    return difflib.SequenceMatcher(None, said, name).ratio()
