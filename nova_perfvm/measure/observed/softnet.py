# SPDX-License-Identifier: Apache-2.0
"""``/proc/net/softnet_stat``: packets that each CPU took in, and lost."""

from __future__ import annotations

from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError

PATH: Final = "/proc/net/softnet_stat"
_MODULUS: Final = 2**32
# Columns; a kernel from 5.10 on says in the thirteenth which CPU it is.
_CPU: Final = 12


class Backlog(NamedTuple):
    """What happened on a CPU between two looks.

    :ivar processed: packets
    :ivar dropped: packets, as the CPU's queue was full
    :ivar squeezed: how often it stopped with packets left, as its time or number
        of packets was used up
    """

    processed: int
    dropped: int
    squeezed: int


def read(collected: Collected) -> dict[int, Backlog]:
    """Return what happened on each CPU between the looks.

    :raises NotReadError: when it was not read twice
    """
    first, later = map(_rows, collected.looks(PATH))
    return {
        cpu: Backlog(
            *((n - was) % _MODULUS for n, was in zip(now, first[cpu], strict=True))
        )
        for cpu, now in later.items()
        if cpu in first
    }


def _rows(text: str) -> dict[int, tuple[int, ...]]:
    try:
        rows = [[int(word, 16) for word in line.split()] for line in text.splitlines()]
    except ValueError as exc:
        raise NotReadError(PATH, f"it cannot be understood: {exc}") from exc
    return {
        row[_CPU] if len(row) > _CPU else index: tuple(row[:3])
        for index, row in enumerate(rows)
        if len(row) > 2
    }
