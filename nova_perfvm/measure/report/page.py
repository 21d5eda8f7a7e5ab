# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML file: the verdict, all comparisons in a plot and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nova_perfvm.measure.report import answer, plot
from nova_perfvm.measure.report.content import Content
from nova_perfvm.measure.statistics.compare import Comparison
from nova_perfvm.measure.statistics.verdict import Verdict, worst
from nova_perfvm.pages import render_page


def html(content: Content) -> str:
    """Return the page of what benchmarks have measured."""
    verdict, words = _overall(content)
    return render_page(
        "report.html",
        **of_comparisons(content.comparisons),
        title="Is the VM as fast as the machine?",
        verdict=verdict.value,
        look=verdict.level.value,
        words=words,
        content=content,
        reasons=[
            ("failure", f"{one.where}: {one.who}", "", one.reason, one.stderr)
            for one in content.failures
        ],
        warnings=dict.fromkeys(r for row in content.comparisons for r in row.remarks),
    )


def of_comparisons(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return what the template shows of comparisons."""
    verdicts = [row.verdict for row in comparisons]
    return {
        "groups": plot.groups(comparisons),
        "plot": plot,
        "ratio": answer.ratio,
        "answer": answer.answer(comparisons) if comparisons else "",
        "counts": [
            (verdicts.count(verdict), verdict.level.value, verdict.value)
            for verdict in reversed(Verdict)
        ],
    }


def _overall(content: Content) -> tuple[Verdict, str]:
    """Return the worst verdict that decides, and why it is that."""
    if content.not_compared:
        return Verdict.INCONCLUSIVE, content.not_compared
    found = worst(row.verdict for row in content.comparisons if row.primary)
    failures = len(content.failures)
    if failures and found is Verdict.PASS:
        found = Verdict.INCONCLUSIVE
    return found, f"not all was measured: {failures} failed" if failures else ""
