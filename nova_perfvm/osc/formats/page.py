# SPDX-License-Identifier: Apache-2.0
"""An audit's report as one HTML page that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import Final

from nova_perfvm.diagnose.audit import AuditResult, Finding, Report, Severity

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --text: #1b1f24;
  --critical: #c4262e; --warning: #b36b00; --unknown: #6b7280; --ok: #1a7f4b; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ed;
  --critical: #ff7b82;
  --warning: #f5b14c; --unknown: #a3aab5; --ok: #5fd39a; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; }
.facts { color: var(--unknown); margin: 0 0 1.5rem; overflow-wrap: anywhere; }
.counts { display: flex; gap: 1rem; flex-wrap: wrap; list-style: none; padding: 0; }
.counts li { border: 1px solid var(--line); border-radius: .5rem;
  padding: .5rem 1.25rem; min-width: 7rem; }
.counts b { display: block; font-size: 1.7rem; line-height: 1.2; }
.critical { color: var(--critical); } .warning { color: var(--warning); }
.unknown, .note { color: var(--unknown); } .ok { color: var(--ok); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .5rem .75rem .5rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; white-space: nowrap; }
article { border: 1px solid var(--line); border-left: 4px solid currentColor;
  border-radius: .35rem; padding: .6rem 1rem; margin: .75rem 0;
  break-inside: avoid; }
article > * { color: var(--text); margin: .2rem 0; overflow-wrap: anywhere; }
article .code { color: inherit; font-weight: 600; }
pre { background: var(--soft); padding: .5rem .75rem; border-radius: .25rem;
  white-space: pre-wrap; font: 13px/1.5 ui-monospace, monospace; }
"""


def html(report: Report) -> str:
    """Return the page: counts, checks in their order, findings worst first."""
    counts = "".join(
        f'<li><b class="{severity.value}">{report.count(severity)}</b>'
        f"{severity.value}</li>"
        for severity in reversed(Severity)
    )
    checks = "".join(_check(result) for result in report.results)
    findings = "".join(_finding(finding) for finding in report.findings)
    if not findings:
        findings = '<p class="ok">Nothing was found.</p>'
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>perfvm audit {escape(report.taken_at)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>perfvm audit</h1>
<p class="facts">{report.hosts} host(s) and {report.servers} server(s), seen
{escape(report.taken_at)}<br>policy {escape(report.policy_digest)}</p>
<ul class="counts">{counts}</ul>
<h2>Checks</h2>
<table>
<thead><tr><th>Check</th><th>Result</th><th>Findings</th></tr></thead>
<tbody>{checks}</tbody>
</table>
<h2>Findings</h2>
{findings}
</body>
</html>
"""


def _check(result: AuditResult) -> str:
    word = result.severity.value if result.severity else "ok"
    return (
        f'<tr><td>{escape(result.title)}</td><td class="{word}">{word}</td>'
        f"<td>{len(result.findings)}</td></tr>\n"
    )


def _finding(finding: Finding) -> str:
    word = finding.severity.value
    return (
        f'<article class="{word}"><p class="code">{word}: {escape(finding.code)}</p>'
        f"<p><b>{escape(finding.subject)}</b></p><p>{escape(finding.evidence)}</p>"
        f"<pre>{escape(finding.remedy)}</pre></article>\n"
    )
