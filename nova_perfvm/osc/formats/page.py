# SPDX-License-Identifier: Apache-2.0
"""An audit's report as one HTML page that needs nothing else."""

from __future__ import annotations

from nova_perfvm.diagnose.audit import Report, Severity
from nova_perfvm.pages import render_page


def html(report: Report) -> str:
    """Return the page: counts, findings worst first, checks in their order."""
    return render_page(
        "audit.html",
        report=report,
        counts=[(report.count(s), s.value, s.value) for s in reversed(Severity)],
        checks=[
            (
                result.title,
                result.severity.value if result.severity else "ok",
                len(result.findings),
            )
            for result in report.results
        ],
    )
