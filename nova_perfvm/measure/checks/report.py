# SPDX-License-Identifier: Apache-2.0
"""Run the checks of a machine and report their findings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from nova_perfvm.findings import CheckFindings, Level, Report
from nova_perfvm.measure.checks.check import Check
from nova_perfvm.measure.collect.collected import Collected


@dataclass(frozen=True)
class CheckReport(Report):
    """The findings of a machine's checks, at least one per check.

    :ivar kind: host or guest
    """

    counted: ClassVar = (Level.FAILURE, Level.WARNING, Level.UNKNOWN, Level.OK)

    kind: str
    hostname: str

    @property
    def name(self) -> str:
        """The command and the machine, such as ``perfvm host check of cmp1``."""
        return f"perfvm {self.kind} check of {self.hostname}"


def run(checks: Iterable[Check], collected: Collected, subject: Any) -> CheckReport:
    """Run checks; return the report of their findings.

    :param subject: the host or guest, made from `collected`
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
