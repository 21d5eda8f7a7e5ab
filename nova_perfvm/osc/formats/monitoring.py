# SPDX-License-Identifier: Apache-2.0
"""An audit's report for machines: JUnit, and Prometheus' text format."""

from __future__ import annotations

from nova_perfvm.diagnose.audit import SEVERITIES, AuditResult, Report, Severity
from nova_perfvm.osc.formats import metrics
from nova_perfvm.osc.formats.junit import Case, suite


def junit(report: Report) -> str:
    """Return a test suite with a case for each check; unknown ones are skipped.

    What is only noted fails none.
    """
    return suite("perfvm audit", report.taken_at, map(_case, report.results))


def _case(result: AuditResult) -> Case:
    named = ("perfvm.audit", result.title)
    if not result.findings:
        return Case(*named)
    text = "\n\n".join(
        f"{finding.severity.value}: {finding}\n{finding.remedy}"
        for finding in result.findings
    )
    if result.severity is Severity.NOTE:
        return Case(*named, "system-out", text=text)
    unknown = result.severity is Severity.UNKNOWN
    message = f"{len(result.findings)} finding(s), {result.findings[0]}"
    return Case(*named, "skipped" if unknown else "failure", message, text)


def prometheus(report: Report) -> str:
    """Return metrics for node_exporter's textfile collector, always the same ones."""
    findings = (
        ({"code": code, "severity": SEVERITIES[code].value}, count)
        for code, count in report.by_code().items()
    )
    return "".join(
        metrics.gauge(f"perfvm_audit_{name}", meaning, samples)
        for name, meaning, samples in (
            ("findings", "Violations of the policy that an audit found.", findings),
            ("hosts", "Compute hosts that were looked at.", [({}, report.hosts)]),
            ("servers", "Servers that were looked at.", [({}, report.servers)]),
            (
                "timestamp_seconds",
                "When the cloud was looked at, in seconds since the epoch.",
                [({}, metrics.seconds(report.taken_at))],
            ),
        )
    )
