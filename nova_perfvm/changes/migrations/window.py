# SPDX-License-Identifier: Apache-2.0
"""Find the migrations of a drain plan that are over within a time window."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.model import MigrationPlan, Move
from nova_perfvm.changes.migrations.planning import Planning

# A cold migration copies no memory, and its disks are assumed to be volumes or shared.
_COLD_S: Final = 60.0


def within(
    planning: Planning, plan: MigrationPlan, host: str, window_s: float
) -> MigrationPlan:
    """Return the part of a plan that fits into a window, one migration at a time.

    The shortest possible migrations of the host's servers come first, so that the most
    servers leave; other servers make room when no such migration is possible.

    :param host: the host that is drained
    """

    def time_s(move: Move) -> float:
        found = planning.estimates.of(move)
        if found is None:
            return _COLD_S
        return found.time_s if found.moved else math.inf

    now = end = Arrangement(planning)
    left_s = end_s = window_s
    todo = sorted(plan.moves, key=lambda move: (move.source != host, time_s(move)))
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
    out = [move for move in plan.moves if move.source == host and move not in end.moves]
    return replace(
        plan,
        moves=end.moves,
        gained=plan.gained - len(out),
        reasons=(*plan.reasons, *(_why(move, time_s(move), end_s) for move in out)),
        after=end.snapshot(),
    )


def _why(move: Move, time_s: float, left_s: float) -> str:
    why = "its live migration does not converge"
    if time_s < math.inf:
        why = (
            f"its migration takes {time_s / 60:.1f} minutes, besides moves that make "
            f"room for it, and {left_s / 60:.1f} of the window are left"
        )
    return f"{move.name} ({move.server}) stays: {why}"
