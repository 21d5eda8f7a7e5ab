# SPDX-License-Identifier: Apache-2.0
"""The key ``accept``: codes of findings that the operator accepts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Final

from nova_perfvm.documents.mistakes import Mistake
from nova_perfvm.findings import LEVELS, Level

_EXPECTED: Final = "expected one that a command shows, such as audit.flavor_changed"
# Names that are less alike are no help.
_ALIKE: Final = 0.6


def acceptance_mistakes(codes: Iterable[str]) -> Iterator[Mistake]:
    """List codes that nothing has, and those that nobody may accept."""
    for index, code in enumerate(codes):
        path = ("accept", str(index))
        level = LEVELS.get(code)
        if level is None:
            near = difflib.get_close_matches(code, LEVELS, 3, _ALIKE)
            hint = f"did you mean {' or '.join(near)}?" if near else _EXPECTED
            yield Mistake(path, f"no finding has the code {code!r}; {hint}")
        elif level is Level.FAILURE:
            yield Mistake(
                path,
                f"{code} is a failure: a guarantee is broken, and it counts as long as "
                "it is found. Remove it here, and follow the finding's remedy",
            )
