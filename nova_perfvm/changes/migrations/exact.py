# SPDX-License-Identifier: Apache-2.0
"""The best plan there is for a small cloud, by OR-tools' CP-SAT.

One pattern is chosen for each host (:mod:`nova_perfvm.changes.migrations.patterns`),
so that as many servers of each kind come as leave.  The order of the migrations is
not part of the question: where the best end cannot be reached step by step, or takes
more steps than there may be, the next best one is taken.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any, Final

from nova_perfvm.changes.migrations.arrangement import Arrangement
from nova_perfvm.changes.migrations.patterns import Limits, Pattern, patterns
from nova_perfvm.changes.migrations.planning import ServerKind
from nova_perfvm.changes.migrations.room import Demanded, cost
from nova_perfvm.changes.migrations.sequence import Order, order
from nova_perfvm.exceptions import PerfVMError

# So many ends are tried that cannot be reached.
_MOST_ENDS: Final = 20
_SECONDS: Final = 120.0


class NoSolverError(PerfVMError):
    """OR-tools is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "--exact needs OR-tools, which is not installed here: pip install "
            "nova-perfvm[plan], or leave --exact out"
        )


class UnsolvedError(PerfVMError):
    """The solver has not finished in time, or no end can be reached."""


def solver() -> Any:
    """Return OR-tools' module of CP-SAT.

    :raises NoSolverError: when it is not installed
    """
    try:
        from ortools.sat.python import cp_model  # noqa: PLC0415
    except ImportError:
        raise NoSolverError from None
    return cp_model


def best(
    start: Arrangement, demanded: Demanded, known: Order, most_moves: int | None
) -> Order:
    """Return the best migrations there are.

    First as much room as is demanded, then the least weight.

    :param known: limits what is looked at, and is the answer where the steps to a
        better end weigh more than it does
    :param most_moves: at most so many
    :raises NoSolverError: when OR-tools is not installed
    :raises TooLargeError: when there are too many possibilities
    :raises UnsolvedError: when none was found in time
    """
    enough = demanded.room(known.end) >= demanded.count
    limits = Limits(cost(known, demanded.weight) if enough else None, most_moves)
    found = _best_end(start, demanded, limits)
    return max(
        (found, known),
        key=lambda each: (demanded.room(each.end), -cost(each, demanded.weight)),
    )


def _best_end(start: Arrangement, demanded: Demanded, limits: Limits) -> Order:
    """Return the migrations of the best end that can be reached."""
    cp_model = solver()
    found = list(patterns(start, demanded, limits))
    model, chosen = _model(cp_model, start, found, demanded, limits)
    for _ in range(_MOST_ENDS):
        engine = cp_model.CpSolver()
        engine.parameters.max_time_in_seconds = _SECONDS
        engine.parameters.num_workers = 1
        engine.parameters.random_seed = 1
        if engine.solve(model) != cp_model.OPTIMAL:
            break
        taken = [p for p, x in zip(found, chosen, strict=True) if engine.value(x)]
        reached = order(start, _goals(start, taken))
        room = min(demanded.count, sum(p.room for p in taken))
        if (
            reached is not None
            and not limits.exceeded(0, len(reached.steps))
            and demanded.room(reached.end) >= room
        ):
            return reached
        same = [x for x in chosen if engine.value(x)]
        model.add(sum(same) < len(same))
    raise UnsolvedError("no best plan was found")


def _model(
    cp_model: Any,
    start: Arrangement,
    found: Sequence[Pattern],
    demanded: Demanded,
    limits: Limits,
) -> tuple[Any, list[Any]]:
    """Return the model, and the variable of each pattern."""
    planning, weight = start.planning, demanded.weight
    model = cp_model.CpModel()
    chosen = [model.new_bool_var(f"{p.host}-{n}") for n, p in enumerate(found)]
    by_host: dict[str, list[Any]] = collections.defaultdict(list)
    flow: dict[ServerKind, list[Any]] = collections.defaultdict(list)
    costs, rooms, moved = [], [], []
    for pattern, x in zip(found, chosen, strict=True):
        by_host[pattern.host].append(x)
        kinds = [planning.kind(start.server(s)) for s in pattern.leaving]
        for kind in kinds:
            flow[kind].append(-x)
        for kind, count in pattern.coming:
            flow[kind].append(count * x)
        costs.append(sum(map(weight, kinds)) * x)
        moved.append(len(kinds) * x)
        rooms.append(pattern.room * x)
    for variables in by_host.values():
        model.add_exactly_one(variables)
    for terms in flow.values():
        model.add(sum(terms) == 0)
    if limits.moves is not None:
        model.add(sum(moved) <= limits.moves)
    gained = model.new_int_var(0, demanded.count, "gained")
    model.add(gained <= sum(rooms))
    most = 1 + sum(
        weight(planning.kind(s)) for name in start.hosts for s in start.movable(name)
    )
    model.minimize(sum(costs) - most * gained)
    return model, chosen


def _goals(start: Arrangement, taken: Sequence[Pattern]) -> dict[str, str]:
    """Return a host for each server that leaves one."""
    coming: dict[ServerKind, list[str]] = collections.defaultdict(list)
    for pattern in taken:
        for kind, count in pattern.coming:
            coming[kind] += [pattern.host] * count
    goals = {}
    for pattern in taken:
        for server_id in pattern.leaving:
            kind = start.planning.kind(start.server(server_id))
            goals[server_id] = coming[kind].pop(0)
    return goals
