# SPDX-License-Identifier: Apache-2.0
"""Find the migrations of a drain plan that are over within a time window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.changes.migrations.planning import Planning

# A cold migration copies no memory, and its disks are assumed to be volumes or shared.
_COLD_S: Final = 60.0


def within(
    planning: Planning, moves: Sequence[Move], host: str, window_s: float
) -> tuple[Arrangement, dict[str, str]]:
    """Return the arrangement after the migrations of a plan that fit into a window.

    The shortest possible migrations of the host's servers come first, so that the most
    servers leave; other servers make room when no such migration is possible.

    :param moves: the plan's
    :param host: the host that is drained
    :param window_s: seconds for all migrations, one after the other
    :returns: the arrangement, and {ID of a server that stays: reason}
    """

    def time_s(move: Move) -> float:
        found = planning.estimates.of(move)
        if found is None:
            return _COLD_S
        return found.time_s if found.moved else math.inf

    now = end = Arrangement(planning)
    left_s = end_s = window_s
    todo = sorted(moves, key=lambda move: (move.source != host, time_s(move)))
    while True:
        for move in todo:
            if now.host_of(move.server) == move.source and time_s(move) <= left_s:
                after = now.moved(move.server, move.target)
                if after is not None:
                    break
        else:
            break
        now, left_s = after, left_s - time_s(move)
        todo.remove(move)
        if move.source == host:
            # A migration that makes room counts only if a server leaves afterwards.
            end, end_s = now, left_s
    out = [move for move in moves if move.source == host and move not in end.moves]
    return end, {move.server: _why(time_s(move), end_s) for move in out}


def _why(time_s: float, left_s: float) -> str:
    if time_s == math.inf:
        return "its live migration does not converge"
    return (
        f"its migration takes {time_s / 60:.1f} minutes, besides moves that make room "
        f"for it, and {left_s / 60:.1f} of the window are left"
    )
