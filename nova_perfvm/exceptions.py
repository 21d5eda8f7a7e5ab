# SPDX-License-Identifier: Apache-2.0
"""Errors that an operator can act on; what went wrong is in attributes."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from nova_perfvm.printable import printable

# A mistake in a list of hundreds of CPUs must not drown in it.
_SHORT = reprlib.Repr()
_SHORT.maxstring = 200


class PerfVMError(Exception):
    """Any mistake that this package reports to its user in one message."""

    def __str__(self) -> str:
        """Return the message; names in it may be of anybody's choice."""
        return printable(super().__str__())


class UnreadableFileError(PerfVMError):
    """A file that cannot be read as text; ``reason`` is why."""

    def __init__(self, path: str, reason: str, *, absent: bool = False) -> None:
        """Keep path and reason, and whether there is no such file."""
        self.path = path
        self.reason = reason
        self.absent = absent
        super().__init__(f"cannot read {path}: {reason}")

    def as_problem(self) -> Problem:
        """Return it as the only mistake of the file."""
        return Problem((), f"cannot be read: {self.reason}")


class CPUSetError(PerfVMError, ValueError):
    """Text that is no list of CPUs.  ``text`` is all of it, ``part`` the fault."""

    def __init__(self, text: str, part: str, expected: str) -> None:
        """Keep the text; say which part of it is wrong, and what was expected."""
        self.text = text
        self.part = part
        self.expected = expected
        super().__init__(
            f"{_SHORT.repr(part)} in CPU list {_SHORT.repr(text)}: expected {expected}"
        )


class ShapeError(PerfVMError, ValueError):
    """Text that is no host shape such as ``2x20`` or ``2x20x2``."""

    def __init__(self, text: str) -> None:
        """Keep the text; say what a shape looks like."""
        self.text = text
        super().__init__(
            f"{text!r} is no host shape: expected NUMA nodes x CPU cores per node "
            "[x threads per core], all at least 1, such as 2x20 or 2x20x2"
        )


class UnknownClassError(PerfVMError, LookupError):
    """A class that the policy does not declare."""

    def __init__(self, name: str, declared: Iterable[str]) -> None:
        """Keep the name asked for and those that exist."""
        self.name = name
        self.declared = tuple(declared)
        super().__init__(
            f"the policy declares no class {name!r}; "
            f"it declares: {', '.join(self.declared)}"
        )


_MOST_NEAREST = 3


def unknown_host(name: str, known: Iterable[str]) -> str:
    """Say that there is no such compute host, and which have names most like it."""
    nearest = difflib.get_close_matches(name, sorted(set(known)), _MOST_NEAREST, 0)
    hint = f" (the nearest: {', '.join(nearest)})" if nearest else ""
    return f"there is no compute host {name!r}{hint}: see openstack perfvm host list"


# Where a value is in a file, as keys from the top.
KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a policy.

    :ivar path: where: ``("classes", "general", "vcpus")``
    :ivar message: what was found, what was expected, and the remedy
    :ivar line: 1-based line in the file, None where there is no file
    """

    path: KeyPath
    message: str
    line: int | None = None

    def __str__(self) -> str:
        """Return ``line 12: classes.general.vcpus: message``."""
        where = ".".join(self.path) or "(top level)"
        prefix = f"line {self.line}: " if self.line is not None else ""
        return f"{prefix}{where}: {self.message}"


class FileMistakesError(PerfVMError):
    """A file that cannot be used; ``problems`` holds every mistake in it."""

    title = "{source}: {count} in the file"
    # So many are shown; None: all.
    most_shown: int | None = None

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        """Keep the source's name and all problems, in the file's order."""
        self.source = source
        self.problems = tuple(problems)
        n = len(self.problems)
        count = f"{n} {'mistake' if n == 1 else 'mistakes'}"
        lines = [self.title.format(source=source, count=count)]
        lines += [f"  {problem}" for problem in self.problems[: self.most_shown]]
        if len(lines) <= n:
            lines.append(f"  and {n + 1 - len(lines)} mistakes more")
        super().__init__("\n".join(lines))

    @classmethod
    def of_another_kind(cls, source: str, words: str) -> Self:
        """Return the error of a file of which only its kind is wrong.

        :param words: what it is, and what was expected
        """
        error = cls(source, [Problem((), words)])
        error.args = (f"{source} {words}",)
        return error


class PolicyError(FileMistakesError):
    """A policy that cannot be used; ``problems`` holds every mistake in it."""

    title = "{source}: {count} in the policy"


class UnreadablePolicyError(PolicyError):
    """A policy's file that cannot be read, so that nobody knows its mistakes."""
