# SPDX-License-Identifier: Apache-2.0
"""Comparisons and findings of scaling as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from nova_perfvm.findings import Finding
from nova_perfvm.measure.report import answer
from nova_perfvm.measure.report.content import Content
from nova_perfvm.measure.statistics.compare import Comparison
from nova_perfvm.measure.statistics.scaling import ScalingFinding
from nova_perfvm.measure.statistics.verdict import OF_RATIO

COLUMNS: Final = (
    "Metric",
    "Threads",
    "VM",
    "At once",
    "Vs host",
    "Vs share",
    "Scaling",
    "Target",
    "Verdict",
    "Reason",
)


def rows(content: Content) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each comparison, then one for each finding of scaling."""
    yield from map(_row, content.comparisons)
    yield from map(_scaling_row, content.scaling)


def findings(content: Content) -> Iterator[Finding]:
    """Yield what people read of each row."""
    yield from map(answer.finding, content.comparisons)
    yield from map(_finding, content.scaling)


def _row(found: Comparison) -> tuple[Any, ...]:
    ratios = [
        answer.ratio(value) + ("*" if name == found.against and value else "")
        for name, value in (("host", found.vs_host), ("share", found.vs_share))
    ]
    group = found.group
    return (
        group.metric,
        group.threads,
        found.who,
        f"{group.at_once}{group.beside}" if group.beside else group.at_once,
        *ratios,
        "",
        f"{found.target:.3g}",
        OF_RATIO[found.level].upper(),
        found.reason,
    )


def _scaling_row(found: ScalingFinding) -> tuple[Any, ...]:
    return (
        *(found.name, "", found.what, found.number, "", ""),
        *(f"{found.observed:.4g}", f"{found.limit:.3g}"),
        *(OF_RATIO[found.level].upper(), found.reason),
    )


def _finding(found: ScalingFinding) -> Finding:
    """Return a judgement of scaling as a line for people."""
    return Finding(
        found.name,
        found.level,
        f"{found.number}, {found.what}",
        "; ".join(filter(None, (f"{found.observed:.4g}", found.reason))),
        f"{found.limit:.3g}",
    )
