# SPDX-License-Identifier: Apache-2.0
"""Who is on a host, and holds what of its child providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nova_perfvm.facts.snapshot import Server
from nova_perfvm.policy import VMClass

# By name of the child, the amounts by resource class.
Holding = Mapping[str, Mapping[str, int]]


class Resident(NamedTuple):
    """A consumer of a host's providers.

    :ivar server: None for a migration, or what is left of one
    :ivar vm_class: the server's; None where it is of no class
    :ivar held: what it holds of the host's children
    """

    consumer: str
    server: Server | None
    vm_class: VMClass | None
    held: Holding


def in_words(holding: Holding) -> str:
    """Say what is held, or should be, of which child; empty for nothing."""
    return ", ".join(
        f"{amount} {name} of {child}"
        for child, taken in sorted(holding.items())
        for name, amount in sorted(taken.items())
    )


class Division(NamedTuple):
    """What residents need, by their UUIDs, or why that cannot be."""

    needs: Mapping[str, Holding]
    faults: tuple[str, ...] = ()
