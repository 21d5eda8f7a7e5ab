# SPDX-License-Identifier: Apache-2.0
"""``/proc/net/softnet_stat``: packets received and dropped on each CPU."""

from __future__ import annotations

from typing import Final, NamedTuple

from nova_perfvm.measure.collect.collected import Collected, NotReadError

PATH: Final = "/proc/net/softnet_stat"
_MODULUS: Final = 2**32
# Index of the column with the CPU's number, since Linux 5.10.
_CPU: Final = 12


class Backlog(NamedTuple):
    """A CPU's received packets between two looks.

    :ivar processed: number of packets
    :ivar dropped: packets dropped because the CPU's queue was full
    :ivar squeezed: receive rounds cut off by their budget of time or packets
    """

    processed: int
    dropped: int
    squeezed: int


def read(collected: Collected) -> dict[int, Backlog]:
    """Return {CPU: backlog between the looks}.

    :raises NotReadError: when softnet_stat was not read twice
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
