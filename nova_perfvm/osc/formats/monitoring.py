# SPDX-License-Identifier: Apache-2.0
"""An audit's report for machines: JUnit, and Prometheus' text format."""

from __future__ import annotations

import datetime as dt
from xml.etree import ElementTree as ET

from nova_perfvm.diagnose.audit import SEVERITIES, AuditResult, Report, Severity


def junit(report: Report) -> str:
    """Return a test suite with a case for each check; unknown ones are skipped.

    What is only noted fails none.
    """
    cases = [_case(result) for result in report.results]
    suite = ET.Element(
        "testsuite",
        name="perfvm audit",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
        errors="0",
        timestamp=report.taken_at,
    )
    suite.extend(cases)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(result: AuditResult) -> ET.Element:
    case = ET.Element("testcase", classname="perfvm.audit", name=result.title)
    if not result.findings:
        return case
    text = "\n\n".join(
        f"{finding.severity.value}: {finding}\n{finding.remedy}"
        for finding in result.findings
    )
    if result.severity is Severity.NOTE:
        ET.SubElement(case, "system-out").text = text
        return case
    unknown = result.severity is Severity.UNKNOWN
    child = ET.SubElement(
        case,
        "skipped" if unknown else "failure",
        message=f"{len(result.findings)} finding(s), {result.findings[0]}",
    )
    child.text = text
    return case


def prometheus(report: Report) -> str:
    """Return metrics for node_exporter's textfile collector, always the same ones."""
    taken = dt.datetime.fromisoformat(report.taken_at).timestamp()
    findings = "".join(
        f'perfvm_audit_findings{{code="{code}",severity="{SEVERITIES[code].value}"}} '
        f"{count}\n"
        for code, count in report.by_code().items()
    )
    return f"""\
# HELP perfvm_audit_findings Violations of the policy that an audit found.
# TYPE perfvm_audit_findings gauge
{findings}\
# HELP perfvm_audit_hosts Compute hosts that were looked at.
# TYPE perfvm_audit_hosts gauge
perfvm_audit_hosts {report.hosts}
# HELP perfvm_audit_servers Servers that were looked at.
# TYPE perfvm_audit_servers gauge
perfvm_audit_servers {report.servers}
# HELP perfvm_audit_timestamp_seconds When the cloud was looked at, in seconds since \
the epoch.
# TYPE perfvm_audit_timestamp_seconds gauge
perfvm_audit_timestamp_seconds {int(taken)}
"""
