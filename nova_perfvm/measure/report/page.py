# SPDX-License-Identifier: Apache-2.0
"""Measurements as one HTML file: all comparisons in a plot and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nova_perfvm.findings import Level
from nova_perfvm.measure.report import answer, plot
from nova_perfvm.measure.report.content import Content
from nova_perfvm.measure.statistics.compare import Comparison
from nova_perfvm.measure.statistics.verdict import OF_RATIO
from nova_perfvm.pages import render_page


def html(content: Content) -> str:
    """Return the page of what benchmarks have measured."""
    words, failures = content.not_compared, len(content.failures)
    if failures:
        words = words or f"not all was measured: {failures} failed"
    return render_page(
        "report.html",
        **of_comparisons(content.comparisons),
        title="Is the VM as fast as the machine?",
        verdict=answer.MEASURED,
        look=Level.UNKNOWN.value,
        words=words,
        content=content,
        reasons=[
            ("failure", f"{where}: {who}", "", reason, stderr)
            for where, who, reason, stderr in content.failures
        ],
        warnings=content.remarks,
    )


def of_comparisons(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return what the template shows of comparisons."""
    levels = [row.level for row in comparisons]
    return {
        "groups": plot.groups(comparisons),
        "plot": plot,
        "ratio": answer.ratio,
        "verdicts": OF_RATIO,
        "answer": answer.answer(comparisons) if comparisons else "",
        "counts": [
            (levels.count(level), level.value, word)
            for level, word in reversed(OF_RATIO.items())
        ],
    }
