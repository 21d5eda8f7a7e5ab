# SPDX-License-Identifier: Apache-2.0
"""What the checks of a machine found, for machines."""

from __future__ import annotations

from nova_perfvm.measure.checks.report import CheckFindings, CheckReport
from nova_perfvm.measure.outcome import Outcome, Status
from nova_perfvm.osc.formats import metrics
from nova_perfvm.osc.formats.junit import Case, suite


def junit(report: CheckReport) -> str:
    """Return a test suite with a case for each check.

    A check fails if it warns, and is skipped if nobody can tell.
    """
    name = f"perfvm {report.kind} check of {report.hostname}"
    cases = (_case(report.kind, result) for result in report.results)
    return suite(name, report.taken_at, cases)


def _case(kind: str, result: CheckFindings) -> Case:
    named = (f"perfvm.{kind}", result.title)
    text = "\n\n".join(map(_lines, result.outcomes))
    if result.status is Status.PASS:
        return Case(*named, "system-out", text=text)
    worst = next(o for o in result.outcomes if o.status is result.status)
    skipped = result.status is Status.SKIP
    message = f"{result.code} {worst.subject}: {worst.observed}"
    return Case(*named, "skipped" if skipped else "failure", message, text)


def _lines(outcome: Outcome) -> str:
    facts = {
        f"{outcome.status.value} {outcome.code}": outcome.subject,
        "expected": outcome.expected,
        "observed": outcome.observed,
        "source": outcome.source,
        "remedy": outcome.remedy,
    }
    return "\n".join(f"{name}: {value}" for name, value in facts.items() if value)


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
