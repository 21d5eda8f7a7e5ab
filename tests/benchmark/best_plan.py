# SPDX-License-Identifier: Apache-2.0
"""The best arrangement of a cloud of a few hosts, whatever the order of migrations.

Of each host all possible changes are listed: who leaves, who comes.  One change is
chosen for each host, so that as many servers of each kind come as leave, by SciPy's
solver of mixed-integer programs.  No plan is better; some of these arrangements no
order of migrations leads to.
"""

import collections
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from nova_perfvm.changes.migrations.openings import groups_of
from tests.unit.changes.migrations.clouds import joined

MOST_CHANGES = 100_000


class UnsolvedError(Exception):
    """There are too many changes."""


class Change(NamedTuple):
    """What may become of one host.

    :ivar leaving: servers that leave
    :ivar coming: number of servers that come, by kind
    :ivar room: number of VMs of the demanded kind that fit then
    """

    host: str
    leaving: tuple[Any, ...]
    coming: dict[Any, int]
    room: int


def best(start, kind, count, known):
    """Return the most room for a number of VMs of a kind, and the least cost of it.

    :param known: a plan that no better one costs more than, if it gives all the room
        that is wanted
    :raises UnsolvedError: when the best is not found
    """
    enough = known.room(kind, count) >= count
    most_cost = known.cost_mb if enough else math.inf
    changes = list(_changes(start, kind, count, most_cost))
    return _best_choice(start, count, changes)


def _changes(start, demanded, count, most_cost):
    """Yield the changes of all hosts that cost no more."""
    kind_of = start.planning.kind
    everywhere = collections.Counter(
        kind_of(server) for name in start.hosts for server in start.movable(name)
    )
    number = 0
    for name in start.hosts:
        alike = groups_of(start, name)
        here = collections.Counter(map(kind_of, start.movable(name)))
        for counts in itertools.product(*(range(len(g) + 1) for g in alike)):
            leaving = tuple(
                s for g, n in zip(alike, counts, strict=True) for s in g[:n]
            )
            kinds = set(map(kind_of, leaving))
            spent = sum(kind_of(server).cost_mb for server in leaving)
            if spent > most_cost:
                continue
            # Who leaves a host does not come back.
            others = everywhere - here if name in start.planning.targets else {}
            others = {kind: n for kind, n in others.items() if kind not in kinds}
            now = start.changed(start.hosts[name].view.without(leaving))
            for coming, end in _comings(now, name, others):
                number += 1
                if number > MOST_CHANGES:
                    raise UnsolvedError
                room = end.hosts[name].room(demanded, count)
                yield Change(name, leaving, coming, room)


def _comings(now, name, most):
    """Yield what may come to a host together, and the arrangement then."""
    if not most:
        yield {}, now
        return
    kind, *rest = most
    for number in range(most[kind] + 1):
        if number:
            now = joined(now, kind, name)
            if now is None:
                return
        for coming, end in _comings(now, name, {other: most[other] for other in rest}):
            yield {kind: number} | coming, end


def _best_choice(start, count, changes):
    """Return the room and the cost of the best choice of a change for each host."""
    kind_of = start.planning.kind
    leaving = [collections.Counter(map(kind_of, c.leaving)) for c in changes]
    weights = [sum(k.cost_mb * n for k, n in c.items()) for c in leaving]
    kinds = {kind for change in changes for kind in change.coming}
    # Each row counts something of the changes that are chosen.
    rows = [[change.host == host for change in changes] for host in start.hosts]
    rows += [
        [
            c.coming.get(kind, 0) - gone[kind]
            for c, gone in zip(changes, leaving, strict=True)
        ]
        for kind in kinds
    ]
    least = [1] * len(start.hosts) + [0] * len(kinds)
    most = list(least)
    rooms = [change.room for change in changes]
    # As much room as is demanded, or as there can be; then the least weight.
    chosen = _chosen(np.negative(rooms), (rows, least, most))
    gained = min(count, chosen @ rooms)
    limits = [*rows, rooms], [*least, gained], [*most, math.inf]
    chosen = _chosen(np.divide(weights, max(weights) or 1), limits)
    return int(gained), int(chosen @ weights)


def _chosen(weights, limits):
    """Return 1 for each change of the choice that weighs least, 0 for the others."""
    rows, least, most = limits
    found = milp(
        weights,
        integrality=1,
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(np.array(rows, float), least, most),
        options={"mip_rel_gap": 0},
    )
    if not found.success:
        raise UnsolvedError
    return np.round(found.x).astype(int)
