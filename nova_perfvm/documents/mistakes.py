# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a file: each mistake with its place, up to a hundred at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nova_perfvm.exceptions import PerfVMError

# Where a value is in a file, as keys from the top.
KeyPath = tuple[str, ...]
# A file of 6 MB can have millions of mistakes, mostly the same one repeated.
MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a file.

    :ivar path: where: ``("classes", "general", "vcpus")``
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
    """Return the first ``MOST`` mistakes, and one more if there are more."""
    return list(itertools.islice(mistakes, MOST + 1))


class DocumentError(PerfVMError):
    """A file that cannot be used; ``mistakes`` holds those in it, up to ``MOST``."""

    def __init__(
        self, source: str, mistakes: Iterable[Mistake], kind: str | None = None
    ) -> None:
        """Keep the source's name and the mistakes, in the file's order.

        :param kind: what the file was to be, such as ``policy``
        """
        self.source = source
        self.kind = kind
        found = first(mistakes)
        self.mistakes = tuple(found[:MOST])
        shown = [f"  {mistake}" for mistake in self.mistakes]
        n = len(self.mistakes)
        if n == 1 and self.mistakes[0].path == () and self.mistakes[0].line is None:
            # It is about the file as such.
            super().__init__(f"{source}: {self.mistakes[0].message}")
            return
        count = "1 mistake" if n == 1 else f"{n} mistakes"
        if len(found) > MOST:
            count, shown = f"more than {count}", [*shown, "  and more"]
        super().__init__("\n".join([f"{source}: {count}", *shown]))


class UnreadableFileError(DocumentError):
    """A file that cannot be read as text; ``reason`` is why."""

    def __init__(self, path: str, reason: str) -> None:
        """Keep path and reason."""
        self.path = path
        self.reason = reason
        super().__init__(path, [Mistake((), f"cannot be read: {reason}")])
        self.args = (f"cannot read {path}: {reason}",)
