# SPDX-License-Identifier: Apache-2.0
"""All checks of a machine, and what they found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from nova_perfvm.findings import CheckFindings, Level, Report
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
