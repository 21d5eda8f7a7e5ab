# SPDX-License-Identifier: Apache-2.0
"""Comparisons by metric, and where a dot plot has each; the template draws it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from nova_perfvm.measure.report import answer
from nova_perfvm.measure.statistics.compare import Comparison
from nova_perfvm.printable import number_of

# Of the drawing, in its units: where the axis begins and ends.
LEFT: Final = 215.0
RIGHT: Final = 565.0
# Of the names before the axis, in letters.
_LONGEST: Final = 32
# How far beyond all ratios intervals are drawn, as a factor: wider ones would leave no
# room for the rest.
_BEYOND: Final = 1.2
# Of axes whose ends differ by less than a factor.
_TICKS: Final = (
    (4.0, (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.6, 2, 2.5, 3)),
    (40.0, (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20)),
    (math.inf, (0.001, 0.01, 0.1, 0.3, 1, 3, 10, 30, 100, 1000)),
)


class Axis(NamedTuple):
    """A logarithmic axis, and its ends as ratios."""

    low: float
    high: float

    def x(self, ratio: float) -> float:
        """Return where a ratio is; the nearer end for one beyond."""
        part = math.log(ratio / self.low) / math.log(self.high / self.low)
        return round(LEFT + (RIGHT - LEFT) * min(max(part, 0.0), 1.0), 1)

    def has(self, ratio: float) -> bool:
        """Return whether a ratio is on it."""
        return self.low <= ratio <= self.high

    @property
    def ticks(self) -> list[float]:
        """The ratios that label the axis."""
        factor = self.high / self.low
        chosen = next(ticks for most, ticks in _TICKS if factor < most)
        return [ratio for ratio in chosen if self.has(ratio)]


class PlotRow(NamedTuple):
    """A comparison, in the table and in the plot.

    :ivar name: VM and threads, cut where the plot has no room
    """

    comparison: Comparison
    name: str


class MetricGroup(NamedTuple):
    """The comparisons in one metric, the worst first."""

    metric: str
    asked: str
    axis: Axis
    rows: tuple[PlotRow, ...]


def groups(comparisons: Iterable[Comparison]) -> list[MetricGroup]:
    """Return the comparisons by metric, the worst first."""
    worst_first = sorted(comparisons, key=lambda row: row.level, reverse=True)
    alone = len({(row.group.at_once, row.group.beside) for row in worst_first}) == 1
    by_metric: dict[tuple[str, str], list[Comparison]] = {}
    for row in worst_first:
        by_metric.setdefault((row.group.metric, answer.asked(row)), []).append(row)
    # Throughput and latency miss their targets at different ends.
    axes = {
        better: _axis([row for row in worst_first if row.better == better])
        for better in ("higher", "lower")
    }
    return [
        MetricGroup(
            *(metric, asked, axes[rows[0].better]),
            tuple(PlotRow(row, _name(row, alone=alone)) for row in rows),
        )
        for (metric, asked), rows in by_metric.items()
    ]


def _axis(rows: Sequence[Comparison]) -> Axis:
    """Return an axis with room for all ratios, and for what is near of intervals."""
    judged = [one.ratio for row in rows if (one := row.judged)]
    seen = [1.0, *(row.target for row in rows), *judged]
    return Axis(min(seen) / _BEYOND, max(seen) * _BEYOND)


def _name(row: Comparison, *, alone: bool) -> str:
    rest = f", {number_of(row.group.threads, 'thread')}"
    if not alone:
        rest += f",{row.group.beside or f' {row.group.at_once} at once'}"
    most = _LONGEST - len(rest)
    who = row.who if len(row.who) <= most else f"{row.who[: most - 1]}…"
    return who + rest
