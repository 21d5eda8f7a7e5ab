# SPDX-License-Identifier: Apache-2.0
"""Compare Keystone's limits with those of a policy, and plan the changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nova_perfvm.changes.steps import Change, Left, Plan
from nova_perfvm.generate.limits import UNLIMITED, Limit
from nova_perfvm.printable import some_of

# More projects make no line.
_MOST_NAMED: Final = 20


class Home(NamedTuple):
    """Whose limits they are.

    :ivar service: ID of Nova's
    :ivar region: ID of that of its endpoint, None for an endpoint without one
    """

    service: str
    region: str | None


class SeenLimit(NamedTuple):
    """A limit as Keystone has it; that of a domain counts as a project's."""

    id: str
    resource: str
    value: int
    project: str = ""


@dataclass(frozen=True)
class ChangeLimit(Change):
    """Create a limit, or set another value.

    :ivar before: the limit that is there, None to create one
    :ivar over: how much projects have now that get no more then, by ID
    """

    words = "{0.action} {0.kind} {0.name} = {0.detail}"
    limit: Limit
    home: Home
    before: SeenLimit | None
    over: Mapping[str, int] = field(default_factory=dict)

    @property
    def lowers(self) -> bool:
        """Return whether projects may then have less than before."""
        before = self.before.value if self.before else UNLIMITED
        return self.limit.value != UNLIMITED and not -1 < before <= self.limit.value

    @property
    def action(self) -> str:
        """What is done."""
        return "set" if self.before else "create"

    @property
    def kind(self) -> str:
        """What Keystone calls it."""
        return self.limit.kind

    @property
    def name(self) -> str:
        """The resource, and the project that it is for."""
        project = self.limit.project
        return self.limit.resource + (f" of {project}" if project else "")

    @property
    def detail(self) -> str:
        """The value, and what it means."""
        was = f", was {self.before.value}" if self.before else ""
        said = f"{self.limit.value} ({self.limit.detail}{was})"
        names = some_of([f"{p} has {n}" for p, n in self.over.items()], _MOST_NAMED)
        return f"{said}; refused any more: {names}" if names else said


def plan_limits(limits: Iterable[Limit], seen: Sequence[SeenLimit], home: Home) -> Plan:
    """Return the steps from a cloud's limits to those of a policy.

    :param seen: all that there are of Nova in the region
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
                "then run this again with --project for each of them"
            )
    return Plan(() if refusals else tuple(changes), tuple(refusals), tuple(left))
