# SPDX-License-Identifier: Apache-2.0
"""All checks of a machine, and what they found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from nova_perfvm.findings import CheckFindings, Finding, Level, Report
from nova_perfvm.measure.checks.check import Check
from nova_perfvm.measure.collect.collected import Collected


@dataclass(frozen=True)
class CheckReport(Report):
    """What the checks of a machine found: of each something, always.

    :ivar kind: host or guest
    """

    counted: ClassVar = (Level.FAILURE, Level.WARNING, Level.UNKNOWN, Level.OK)

    kind: str
    hostname: str

    @property
    def name(self) -> str:
        """What was looked at by which command."""
        return f"perfvm {self.kind} check of {self.hostname}"

    @property
    def grouped(self) -> tuple[Finding, ...]:
        """All findings, for people: what is unknown for the same reason is one.

        Its code names all of them; its subject is left out where it differs.
        """
        groups: dict[tuple[str, ...], list[Finding]] = {}
        for one in self.findings:
            same = (one.observed, one.source)
            key = same if one.level is Level.UNKNOWN else (*same, *map(str, one))
            groups.setdefault(key, []).append(one)
        return tuple(map(_joined, groups.values()))


def _joined(found: list[Finding]) -> Finding:
    codes = dict.fromkeys(one.code for one in found)
    subjects = dict.fromkeys(one.subject for one in found)
    return found[0]._replace(
        code=", ".join(codes), subject=", ".join(subjects) if len(codes) == 1 else ""
    )


def run(checks: Iterable[Check], collected: Collected, subject: Any) -> CheckReport:
    """Run checks.

    :param subject: what they are about, made of what was collected
    """
    return CheckReport(
        tuple(
            CheckFindings(check.title, tuple(check.findings(subject)))
            for check in checks
        ),
        collected.taken_at,
        collected.kind,
        collected.hostname,
    )
