# SPDX-License-Identifier: Apache-2.0
"""Compare Keystone's limits with those of a policy, and plan the changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nova_perfvm.changes.steps import Change, Left, Plan
from nova_perfvm.generate.limits import UNLIMITED, Limit
from nova_perfvm.printable import some_of

# More projects do not fit on a line.
_MOST_NAMED: Final = 20


class Home(NamedTuple):
    """The service and region that limits belong to.

    :ivar service: ID of Nova's service
    :ivar region: ID of the region of Nova's endpoint; None for an endpoint without one
    """

    service: str
    region: str | None


class SeenLimit(NamedTuple):
    """A limit in Keystone; `project` is a project's or domain's ID, empty for all."""

    id: str
    resource: str
    value: int
    project: str = ""


@dataclass(frozen=True)
class ChangeLimit(Change):
    """Create a limit, or change its value.

    :ivar before: the present limit; None to create one
    :ivar over: {ID of a project whose usage exceeds the new limit: its usage}
    """

    words = "{0.action} {0.kind} {0.name} = {0.detail}"
    limit: Limit
    home: Home
    before: SeenLimit | None
    over: Mapping[str, int] = field(default_factory=dict)

    @property
    def lowers(self) -> bool:
        """Return whether the new limit is below the present one; None is unlimited."""
        before = self.before.value if self.before else UNLIMITED
        return self.limit.value != UNLIMITED and not -1 < before <= self.limit.value

    @property
    def action(self) -> str:
        return "set" if self.before else "create"

    @property
    def kind(self) -> str:
        """Keystone's name for the kind of limit."""
        return self.limit.kind

    @property
    def name(self) -> str:
        """The resource, and the project that the limit is for."""
        project = self.limit.project
        return self.limit.resource + (f" of {project}" if project else "")

    @property
    def detail(self) -> str:
        """The new value, its meaning, the present value, and projects above the new."""
        was = f", was {self.before.value}" if self.before else ""
        said = f"{self.limit.value} ({self.limit.detail}{was})"
        names = some_of([f"{p} has {n}" for p, n in self.over.items()], _MOST_NAMED)
        return f"{said}; already above it: {names}" if names else said


def plan_limits(limits: Iterable[Limit], seen: Sequence[SeenLimit], home: Home) -> Plan:
    """Return the steps that set a policy's limits; other limits stay.

    :param seen: all limits of Nova in the region
    """
    changes: list[Change] = []
    refusals: list[str] = []
    left: list[Left] = []
    there = {(limit.resource, limit.project): limit for limit in seen}
    for limit in limits:
        before = there.get((limit.resource, limit.project))
        change = ChangeLimit(limit, home, before)
        if before and (limit.keeps or before.value == limit.value):
            left.append(Left(change.kind, change.name, f"it is {before.value}"))
            continue
        changes.append(change)
        own = [s.id for s in seen if s.resource == limit.resource and s.project]
        if before and own and not limit.project:
            refusals.append(
                f"Keystone keeps {limit.resource} at {before.value} while projects "
                f"have limits of their own: openstack limit delete {' '.join(own)}, "
                "then run this again with --project for each project"
            )
    return Plan(() if refusals else tuple(changes), tuple(refusals), tuple(left))
