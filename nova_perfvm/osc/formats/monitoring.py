# SPDX-License-Identifier: Apache-2.0
"""What is said about a cloud for machines: JUnit, and Prometheus' text format."""

from __future__ import annotations

from nova_perfvm.diagnose.audit import SEVERITIES, AuditResult, Report, Severity
from nova_perfvm.diagnose.overview import Overview
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
    accepted = (
        ({"code": code}, count) for code, count in report.accepted_by_code().items()
    )
    return "".join(
        metrics.gauge(f"perfvm_audit_{name}", meaning, samples)
        for name, meaning, samples in (
            ("findings", "Violations of the policy that an audit found.", findings),
            ("accepted", "Findings that the policy accepts.", accepted),
            ("hosts", "Compute hosts that were looked at.", [({}, report.hosts)]),
            ("servers", "Servers that were looked at.", [({}, report.servers)]),
            (
                "timestamp_seconds",
                "When the cloud was looked at, in seconds since the epoch.",
                [({}, metrics.seconds(report.taken_at))],
            ),
        )
    )


def overview(found: Overview) -> str:
    """Return the audit's metrics, and those of slots and of refusals."""
    return prometheus(found.report) + _slots(found) + _refusals(found)


def _slots(found: Overview) -> str:
    return "".join(
        metrics.gauge(
            f"perfvm_slots{name}",
            meaning,
            [
                ({"host": slots.name, "class": slots.class_name}, getattr(slots, key))
                for slots in found.slots
            ],
        )
        for name, key, meaning in (
            ("", "total", "Servers of the class that the empty host would take."),
            ("_used", "used", "Slots that servers of the class have."),
            ("_free", "free", "Slots that the next servers would get."),
            ("_unfit", "unfit", "Slots that are neither used nor free."),
        )
    )


def _refusals(found: Overview) -> str:
    """Return how many hosts would take a new server, and why the others would not."""
    named = [({"flavor": f.flavor, "class": f.class_name}, f) for f in found.flavors]
    return metrics.gauge(
        "perfvm_hosts_accepting",
        "Hosts that would take a new server of the flavor.",
        [(labels, flavor.accepting) for labels, flavor in named],
    ) + metrics.gauge(
        "perfvm_hosts_refusing",
        "Hosts that would not, by reason; one with several counts for each.",
        [
            (labels | {"code": code}, count)
            for labels, flavor in named
            for code, count in flavor.by_code().items()
        ],
    )
