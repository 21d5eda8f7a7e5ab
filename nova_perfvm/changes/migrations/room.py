# SPDX-License-Identifier: Apache-2.0
"""A short plan of migrations that makes room for one VM, as lines of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nova_perfvm.changes.migrations import goals
from nova_perfvm.changes.migrations.model import command
from nova_perfvm.changes.migrations.planning import Planning, PlanOptions
from nova_perfvm.diagnose.verdicts import SchedulerSettings
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

# A longer plan would take too long for a user who waits for a VM.
_MOST_MOVES: Final = 3


def room_for(
    policy: Policy, snapshot: Snapshot, settings: SchedulerSettings, request: Request
) -> Iterator[str]:
    """Yield a summary and the commands of migrations that make room, or why none do."""
    options = PlanOptions(max_moves=_MOST_MOVES)
    planning = Planning(policy, snapshot, settings.strict, options)
    plan = goals.free(planning, request, 1)
    if not plan.wanted:
        # With --host the request fits, but on another host than HOST.
        yield "there is room for it on another host"
    elif not plan.complete:
        yield f"no plan of {_MOST_MOVES} migrations or fewer makes room"
    else:
        yield (
            f"room by {number_of(len(plan.moves), 'migration')} (plan free looks for "
            "more, and carries them out with --execute):"
        )
        for move in plan.moves:
            yield from command(move).splitlines()
