# SPDX-License-Identifier: Apache-2.0
"""Errors that an operator can act on; their attributes hold the details."""

from __future__ import annotations

import difflib
import re
import reprlib
from collections.abc import Iterable

from nova_perfvm.printable import printable

# Shortens lists of hundreds of CPUs in messages.
_SHORT = reprlib.Repr()
_SHORT.maxstring = 200


class PerfVMError(Exception):
    """Base of the errors whose message this package shows to its user."""

    def __str__(self) -> str:
        """Return the message with unprintable characters escaped."""
        return printable(super().__str__())


class CPUSetError(PerfVMError, ValueError):
    """An invalid list of CPUs: ``text`` is the list, ``part`` its wrong part."""

    def __init__(self, text: str, part: str, expected: str) -> None:
        """Make the message of the wrong part and the expected form."""
        self.text = text
        self.part = part
        super().__init__(
            f"{_SHORT.repr(part)} in CPU list {_SHORT.repr(text)}: expected {expected}"
        )


class ShapeError(PerfVMError, ValueError):
    """An invalid host shape; valid shapes are ``2x20`` and ``2x20x2``."""

    def __init__(self, text: str) -> None:
        """Make the message of the text and the expected form."""
        self.text = text
        super().__init__(
            f"{text!r} is not a host shape: expected NUMA nodes x CPU cores per node "
            "[x threads per core], all at least 1, such as 2x20 or 2x20x2"
        )


class UnknownClassError(PerfVMError, LookupError):
    """A class that the policy does not declare."""

    def __init__(self, name: str, declared: Iterable[str]) -> None:
        """Make the message of the unknown name and the declared names."""
        self.name = name
        self.declared = tuple(declared)
        super().__init__(
            f"the policy declares no class {name!r}; "
            f"it declares: {', '.join(self.declared)}"
        )


_MOST_NEAREST = 3
# Leading zeros of a number: cmp1 resembles cmp01.
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")


def unknown_host(name: str, known: Iterable[str], unseen: Iterable[str] = ()) -> str:
    """Return the message for an unknown compute host, with the most similar names.

    :param known: names of the cloud's hosts
    :param unseen: names of the hosts in Nova cells that are down
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
