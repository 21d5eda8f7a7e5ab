# SPDX-License-Identifier: Apache-2.0
"""An audit's report as one HTML page that needs nothing else."""

from __future__ import annotations

from html import escape

from nova_perfvm.diagnose.audit import AuditResult, Finding, Report, Severity
from nova_perfvm.measure.report import style
from nova_perfvm.measure.report.elements import (
    cell,
    counts,
    date_words,
    digest,
    moment,
    table,
)


def html(report: Report) -> str:
    """Return the page: counts, findings worst first, checks in their order."""
    tiles = counts(
        (report.count(severity), severity.value, severity.value)
        for severity in reversed(Severity)
    )
    head = ("Check", "Result", "Findings")
    checks = table(head, map(_check, report.results), "Checks")
    findings = "".join(_finding(finding) for finding in report.findings)
    if not findings:
        findings = '<p class="ok">Nothing was found.</p>'
    return style.document(
        f"perfvm audit, {date_words(report.taken_at)}",
        f"""<h1>perfvm audit</h1>
<p class="facts">{report.hosts} host(s) and {report.servers} server(s), seen
{moment(report.taken_at)}<br>policy {digest(report.policy_digest)}</p>
{tiles}<h2>Findings</h2>
{findings}<h2>Checks</h2>
{checks}""",
    )


def _check(result: AuditResult) -> tuple[str, ...]:
    word = result.severity.value if result.severity else "ok"
    said = f'<td class="{word}">{word}</td>'
    return cell(result.title), said, cell(len(result.findings))


def _finding(finding: Finding) -> str:
    word = finding.severity.value
    return (
        f'<article class="{word}"><p class="code">{word}: {escape(finding.code)}</p>'
        f"<p><b>{escape(finding.subject)}</b></p><p>{escape(finding.evidence)}</p>"
        f"<pre>{escape(finding.remedy)}</pre></article>\n"
    )
