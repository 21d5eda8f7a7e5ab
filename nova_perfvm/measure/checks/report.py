# SPDX-License-Identifier: Apache-2.0
"""All checks of a machine, and what they found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from nova_perfvm.measure.checks.check import Check
from nova_perfvm.measure.collected import Collected
from nova_perfvm.measure.outcome import Outcome, Status, worst


class CheckFindings(NamedTuple):
    """What one check found: something, always."""

    code: str
    title: str
    outcomes: tuple[Outcome, ...]

    @property
    def status(self) -> Status:
        """The worst of it."""
        return worst(self.outcomes)


@dataclass(frozen=True)
class CheckReport:
    """What the checks of a machine found.

    :ivar kind: host or guest
    :ivar taken_at: when it was looked at, ISO 8601, UTC
    """

    kind: str
    hostname: str
    taken_at: str
    results: tuple[CheckFindings, ...]

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """All that was found, worst first, then in the order of the checks."""
        found = [outcome for result in self.results for outcome in result.outcomes]
        order = list(Status)
        return tuple(sorted(found, key=lambda one: -order.index(one.status)))

    @property
    def grouped(self) -> tuple[Outcome, ...]:
        """The same, for people: what was skipped for the same reason is one.

        Its code names all of them; its subject is left out where it differs.
        """
        groups: dict[tuple[str, ...], list[Outcome]] = {}
        for one in self.outcomes:
            same = (one.observed, one.source)
            key = same if one.status is Status.SKIP else (*same, *map(str, one))
            groups.setdefault(key, []).append(one)
        return tuple(map(_joined, groups.values()))

    @property
    def counts(self) -> Counter[Status]:
        """How often each status was found."""
        return Counter(outcome.status for outcome in self.outcomes)

    def exit_code(self, *, strict: bool = False) -> int:
        """Return 0 if all holds, 1 for warnings, 2 for failures.

        :param strict: take what nobody can tell for a warning
        """
        code = worst(self.outcomes).exit_code
        return code or int(strict and bool(self.counts[Status.SKIP]))


def _joined(outcomes: list[Outcome]) -> Outcome:
    codes = dict.fromkeys(one.code for one in outcomes)
    subjects = dict.fromkeys(one.subject for one in outcomes)
    return outcomes[0]._replace(
        code=", ".join(codes), subject=", ".join(subjects) if len(codes) == 1 else ""
    )


def run(checks: Iterable[Check], collected: Collected, subject: Any) -> CheckReport:
    """Run checks.

    :param subject: what they are about, made of what was collected
    """
    return CheckReport(
        collected.kind,
        collected.hostname,
        collected.taken_at,
        tuple(
            CheckFindings(check.code, check.title, tuple(check.outcomes(subject)))
            for check in checks
        ),
    )
