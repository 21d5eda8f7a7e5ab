# SPDX-License-Identifier: Apache-2.0
"""Errors that an operator can act on; what went wrong is in attributes."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Iterable

from nova_perfvm.printable import printable

# A mistake in a list of hundreds of CPUs must not drown in it.
_SHORT = reprlib.Repr()
_SHORT.maxstring = 200


class PerfVMError(Exception):
    """Any mistake that this package reports to its user in one message."""

    def __str__(self) -> str:
        """Return the message; names in it may be of anybody's choice."""
        return printable(super().__str__())


class CPUSetError(PerfVMError, ValueError):
    """Text that is no list of CPUs.  ``text`` is all of it, ``part`` the fault."""

    def __init__(self, text: str, part: str, expected: str) -> None:
        """Keep the text; say which part of it is wrong, and what was expected."""
        self.text = text
        self.part = part
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
# Before the first digit that counts: cmp1 is cmp01.
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")


def unknown_host(name: str, known: Iterable[str], unseen: Iterable[str] = ()) -> str:
    """Say that there is no such compute host, and which have names most like it.

    :param unseen: hosts of cells that are down
    """
    if name in unseen:
        return (
            f"nothing is known of host {name}: its cell is down, so that "
            "nova-scheduler leaves it out"
        )
    wanted = difflib.SequenceMatcher(b=_ZEROS.sub("", name), autojunk=False)

    def distance(other: str) -> tuple[float, str]:
        wanted.set_seq1(_ZEROS.sub("", other))
        return -wanted.ratio(), other

    nearest = sorted(set(known), key=distance)[:_MOST_NEAREST]
    hint = f" (the nearest: {', '.join(nearest)})" if nearest else ""
    return f"there is no compute host {name!r}{hint}: see openstack perfvm host list"
