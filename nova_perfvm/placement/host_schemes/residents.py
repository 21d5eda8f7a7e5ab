# SPDX-License-Identifier: Apache-2.0
"""The VMs on a host, and their allocations of its child providers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nova_perfvm.facts.snapshot import Server
from nova_perfvm.policy import VMClass

# {name of the child provider: {resource class: amount}}
Holding = Mapping[str, Mapping[str, int]]


class Resident(NamedTuple):
    """A consumer of a host's providers.

    :ivar consumer: UUID of the server or migration
    :ivar server: the server; None for a migration, or a leftover allocation
    :ivar vm_class: the server's class; None without a class
    :ivar held: allocations of the host's child providers
    """

    consumer: str
    server: Server | None
    vm_class: VMClass | None
    held: Holding


def in_words(holding: Holding) -> str:
    """Return a holding as "AMOUNT CLASS of CHILD, ..."; empty for no allocation."""
    return ", ".join(
        f"{amount} {name} of {child}"
        for child, taken in sorted(holding.items())
        for name, amount in sorted(taken.items())
    )


class Division(NamedTuple):
    """The allocations that residents lack, and faults that rule allocations out.

    :ivar needs: {consumer's UUID: lacking allocations}
    :ivar faults: messages about VMs that cannot stay on the host
    """

    needs: Mapping[str, Holding]
    faults: tuple[str, ...] = ()
