# SPDX-License-Identifier: Apache-2.0
"""What the checks of a machine found, for machines."""

from __future__ import annotations

from typing import Final

from nova_perfvm.findings import CheckFindings, Finding, Level, Report
from nova_perfvm.measure.checks.report import CheckReport
from nova_perfvm.measure.outcome import Status
from nova_perfvm.osc.formats import junit as junits
from nova_perfvm.osc.formats import metrics

_LEVELS: Final = {
    Status.PASS: Level.OK,
    Status.SKIP: Level.UNKNOWN,
    Status.WARN: Level.WARNING,
    Status.FAIL: Level.FAILURE,
}


def junit(report: CheckReport) -> str:
    """Return a test suite with a case for each check.

    A check fails if it warns, and is skipped if nobody can tell.
    """
    results = tuple(
        CheckFindings(
            result.title,
            tuple(
                Finding(
                    one.code,
                    _LEVELS[one.status],
                    one.subject,
                    one.observed,
                    one.expected,
                    one.source,
                    one.remedy,
                )
                for one in result.outcomes
            ),
        )
        for result in report.results
    )
    return junits.junit(
        Report(results, report.taken_at),
        f"perfvm {report.kind} check of {report.hostname}",
        f"perfvm.{report.kind}",
    )


def prometheus(report: CheckReport) -> str:
    """Return metrics for node_exporter's textfile collector, always the same ones."""
    machine = {"kind": report.kind, "hostname": report.hostname}
    outcomes = (
        (
            machine | {"code": result.code, "status": status.value},
            sum(outcome.status is status for outcome in result.outcomes),
        )
        for result in report.results
        for status in Status
    )
    meaning = "When the machine was looked at, in seconds since the epoch."
    taken = [(machine, metrics.seconds(report.taken_at))]
    return metrics.gauge(
        "perfvm_check_outcomes", "What checks of a machine found.", outcomes
    ) + metrics.gauge("perfvm_check_timestamp_seconds", meaning, taken)
