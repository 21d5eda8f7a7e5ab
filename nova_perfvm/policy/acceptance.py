# SPDX-License-Identifier: Apache-2.0
"""The key ``accept``: codes of findings that the operator accepts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.findings import LEVELS, Level


def acceptance_mistakes(codes: Iterable[str]) -> Iterator[Mistake]:
    """List codes that nothing has, and those that nobody may accept."""
    for index, code in enumerate(codes):
        path = ("accept", str(index))
        level = LEVELS.get(code)
        if level is None:
            (near,) = difflib.get_close_matches(code, LEVELS, 1, 0)
            yield Mistake(
                path, f"no finding has the code {code!r}; did you mean {near}?"
            )
        elif level is Level.FAILURE:
            message = f"{code} is a failure: a guarantee is broken. Remove it here, and"
            yield Mistake(path, f"{message} follow the finding's remedy")
