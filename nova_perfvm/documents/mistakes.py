# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a file: each mistake with its place, and all of them at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nova_perfvm.exceptions import PerfVMError

# Where a value is in a file, as keys from the top.
KeyPath = tuple[str, ...]
# More are mostly repetitions of the same one.
_MOST_SHOWN = 20


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


class DocumentError(PerfVMError):
    """A file that cannot be used; ``mistakes`` holds every mistake in it."""

    def __init__(
        self, source: str, mistakes: Iterable[Mistake], kind: str | None = None
    ) -> None:
        """Keep the source's name and all mistakes, in the file's order.

        :param kind: what the file was to be, such as ``policy``
        """
        self.source = source
        self.kind = kind
        self.mistakes = tuple(mistakes)
        shown = [f"  {mistake}" for mistake in self.mistakes[:_MOST_SHOWN]]
        n = len(self.mistakes)
        if n == 1 and self.mistakes[0].path == () and self.mistakes[0].line is None:
            # It is about the file as such.
            super().__init__(f"{source}: {self.mistakes[0].message}")
            return
        if n > _MOST_SHOWN:
            shown.append(f"  and {n - _MOST_SHOWN} mistakes more")
        count = "1 mistake" if n == 1 else f"{n} mistakes"
        super().__init__("\n".join([f"{source}: {count}", *shown]))


class UnreadableFileError(DocumentError):
    """A file that cannot be read as text; ``reason`` is why."""

    def __init__(self, path: str, reason: str) -> None:
        """Keep path and reason."""
        self.path = path
        self.reason = reason
        super().__init__(path, [Mistake((), f"cannot be read: {reason}")])
        self.args = (f"cannot read {path}: {reason}",)
