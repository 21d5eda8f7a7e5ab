# SPDX-License-Identifier: Apache-2.0
"""A report of checks as a self-contained HTML page."""

from __future__ import annotations

from nova_perfvm.findings import Level, Report
from nova_perfvm.pages import render_page


def html(report: Report) -> str:
    """Return the page: counts, findings worst first, checks in their order."""
    return render_page(
        "audit.html",
        report=report,
        counts=[(report.count(x), x.value, x.value) for x in list(Level)[:0:-1]],
        checks=[
            (result.title, result.level.value, len(result.findings))
            for result in report.results
        ],
    )
