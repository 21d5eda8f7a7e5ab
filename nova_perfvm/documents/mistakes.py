# SPDX-License-Identifier: Apache-2.0
"""The mistakes in a file: each with its place, up to a hundred at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nova_perfvm.exceptions import PerfVMError

# The place of a value in a file: the keys from the top.
KeyPath = tuple[str, ...]
# Most mistakes to list: a file of 6 MB can repeat the same mistake millions of times.
MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a file.

    :ivar path: the place, such as ``("classes", "general", "vcpus")``
    :ivar message: what was found, what was expected, and the remedy
    :ivar line: 1-based line in the file, None where it is not known
    """

    path: KeyPath
    message: str
    line: int | None = None

    def __str__(self) -> str:
        """Return ``line 12: classes.general.vcpus: message``."""
        line = "" if self.line is None else f"line {self.line}: "
        return f"{line}{'.'.join(self.path) or '(top level)'}: {self.message}"


def first(mistakes: Iterable[Mistake]) -> list[Mistake]:
    """Return the first ``MOST`` + 1 mistakes: the last shows that the list is cut."""
    return list(itertools.islice(mistakes, MOST + 1))


class DocumentError(PerfVMError):
    """A file that cannot be used; ``mistakes`` has its first ``MOST`` mistakes."""

    def __init__(
        self, source: str, mistakes: Iterable[Mistake], kind: str | None = None
    ) -> None:
        """Make the message of the source's name and the mistakes, in the given order.

        :param kind: the expected kind of the file, such as ``policy``
        """
        self.source = source
        self.kind = kind
        found = first(mistakes)
        self.mistakes = tuple(found[:MOST])
        shown = [f"  {mistake}" for mistake in self.mistakes]
        n = len(self.mistakes)
        if n == 1 and self.mistakes[0].path == () and self.mistakes[0].line is None:
            # A mistake without a place concerns the whole file.
            super().__init__(f"{source}: {self.mistakes[0].message}")
            return
        count = "1 mistake" if n == 1 else f"{n} mistakes"
        if len(found) > MOST:
            count, shown = f"more than {count}", [*shown, "  and more"]
        super().__init__("\n".join([f"{source}: {count}", *shown]))


class UnreadableFileError(DocumentError):
    """A file that cannot be read as text, with the ``path`` and the ``reason``."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(path, [Mistake((), f"cannot be read: {reason}")])
        self.args = (f"cannot read {path}: {reason}",)
