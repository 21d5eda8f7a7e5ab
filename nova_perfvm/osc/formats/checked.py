# SPDX-License-Identifier: Apache-2.0
"""What the checks of a machine found, for machines."""

from __future__ import annotations

from nova_perfvm.measure.checks.report import CheckReport
from nova_perfvm.osc.formats import junit as junits
from nova_perfvm.osc.formats import metrics


def junit(report: CheckReport) -> str:
    """Return a test suite with a case for each check."""
    name = f"perfvm {report.kind} check of {report.hostname}"
    return junits.junit(report, name, f"perfvm.{report.kind}")


def prometheus(report: CheckReport) -> str:
    """Return metrics for node_exporter's textfile collector, always the same ones."""
    machine = {"kind": report.kind, "hostname": report.hostname}
    found = (
        (
            machine | {"code": result.code, "level": level.value},
            sum(finding.level is level for finding in result.findings),
        )
        for result in report.results
        for level in report.counted
    )
    meaning = "When the machine was looked at, in seconds since the epoch."
    taken = [(machine, metrics.seconds(report.taken_at))]
    return metrics.gauge(
        "perfvm_check_findings", "What checks of a machine found.", found
    ) + metrics.gauge("perfvm_check_timestamp_seconds", meaning, taken)
