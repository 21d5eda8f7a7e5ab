# SPDX-License-Identifier: Apache-2.0
"""The interval of a ratio that was measured several times.

The logarithms of the ratios of rounds are averaged, and Student's t gives the
interval.  Within a round both sides meet the same neighbours, clock and
temperature, so what drifts from round to round is in both and cancels; who comes
first is drawn by lot, so that what remains does not lean to one side (randomized
multiple interleaved trials: Abedi and Brecht, ICPE 2017).  A bootstrap of few
values is too narrow; doc/source/contributor/statistics.rst has both coverages as
``tests/benchmark/coverage.py`` measures them.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import stats

CONFIDENCE: Final = 0.95
# With fewer, one odd round decides.
LEAST_ROUNDS: Final = 5
# More are planned for nothing: the ratio is the target.
MOST_ROUNDS: Final = 1000
# How often as many rounds as are planned shall tell.
POWER: Final = 0.85
# Few rounds tell little of the spread: a plan takes one that it exceeds in 20 % of
# cases only.
_SPREAD_BELOW: Final = 0.8
# From so many rounds on, a drift of the ratio itself can be told from chance.
_ROUNDS_TO_SEE_A_DRIFT: Final = 10
# One-sided 5 % of a normal distribution: a lag-1 autocorrelation above it, in
# units of 1 / sqrt(n), is rare where there is none.
_NOTICEABLE: Final = 1.645
_STRONGEST: Final = 0.95
# What rounding leaves of no deviation.
_NONE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio and how sure it is.

    :ivar ratio: geometric mean over the rounds
    :ivar low: lower end of the 95 % interval, None where there is but one round
    :ivar high: upper end
    :ivar rounds: how many ratios there were
    :ivar least: that of the round with the lowest
    :ivar most: that of the round with the highest
    :ivar spread: standard deviation of the logarithm of a round's ratio; None where
        there is but one round
    :ivar effective: how many independent rounds tell as much
    """

    ratio: float
    low: float | None
    high: float | None
    rounds: int
    least: float
    most: float
    spread: float | None = None
    effective: float = 1

    @property
    def drifts(self) -> bool:
        """Whether a round's ratio resembles that of the round before."""
        return self.effective < self.rounds

    def interval(self, of_rows: int = 1) -> tuple[float, float] | None:
        """Return the ends that hold the ratios of all of some rows at once.

        :param of_rows: how many rows are judged together; each gets its part of
            the error (Bonferroni), so that all hold in 95 % of cases
        :returns: None where there is but one round
        """
        if self.spread is None:
            return None
        error = (1 - CONFIDENCE) / of_rows
        factor = _factor(self.spread, self.rounds, self.effective, error)
        return self.ratio / factor, self.ratio * factor


def estimate(ratios: Sequence[float]) -> Estimate:
    """Return the estimate of a ratio from that of each round, in their order.

    :param ratios: at least one, each above 0
    """
    logs = np.log(np.asarray(ratios, dtype=float))
    rounds, ratio = len(logs), math.exp(np.mean(logs))
    ends = min(ratios), max(ratios)
    if rounds == 1:
        return Estimate(ratio, None, None, 1, *ends)
    effective = effective_rounds(logs)
    # The deviation from a mean of values that resemble each other is too small.
    spread = float(np.std(logs, ddof=1)) * math.sqrt(
        (rounds - 1) / max(rounds - rounds / effective, 0.5)
    )
    spread = spread if spread > _NONE else 0.0
    factor = _factor(spread, rounds, effective, 1 - CONFIDENCE)
    low, high = ratio / factor, ratio * factor
    return Estimate(ratio, low, high, rounds, *ends, spread, effective)


def _factor(spread: float, rounds: int, effective: float, error: float) -> float:
    """Return by what the ends of an interval are above and below the ratio.

    A drift is guessed from few rounds: an interval that is widened for one rests on
    no fewer degrees of freedom than that of the fewest rounds.

    :param error: in how many cases the ratio may be beyond the ends
    """
    freedom = effective - 1
    if effective < rounds:
        freedom = max(freedom, LEAST_ROUNDS - 1)
    half = float(stats.t.isf(error / 2, freedom)) * spread / math.sqrt(effective)
    return math.exp(half)


def effective_rounds(logs: Sequence[float] | np.ndarray) -> float:
    """Return how many independent rounds tell as much as these.

    As many as there are, unless the ratio of a round resembles that of the round
    before it more than chance does: then fewer, by the variance of the mean of an
    autoregressive process of first order, its estimate freed of bias (Kendall,
    Biometrika 1954).
    """
    centred = np.asarray(logs, dtype=float) - np.mean(logs)
    rounds, total = len(centred), float(np.sum(centred**2))
    if rounds < _ROUNDS_TO_SEE_A_DRIFT or total < _NONE:
        return float(rounds)
    lag_1 = float(np.sum(centred[1:] * centred[:-1])) / total
    # Without autocorrelation its expectation is -1 / n.
    if (lag_1 + 1 / rounds) * math.sqrt(rounds) <= _NOTICEABLE:
        return float(rounds)
    phi = min(lag_1 + (1 + 3 * lag_1) / rounds, _STRONGEST)
    lags = np.arange(1, rounds)
    inflation = 1 + 2 * float(np.sum((1 - lags / rounds) * phi**lags))
    return rounds / inflation


def rounds_needed(found: Estimate, target: float) -> int | None:
    """Return how many rounds tell a ratio from a target in 85 % of cases.

    If the ratio is what it seems; None where more than ``MOST_ROUNDS`` would not do.
    """
    if found.spread is None:
        return LEAST_ROUNDS
    freedom = found.rounds - 1
    below = freedom / stats.chi2.ppf(1 - _SPREAD_BELOW, freedom)
    spread = found.spread * math.sqrt(below * found.rounds / found.effective)
    if spread == 0:
        return max(LEAST_ROUNDS, found.rounds + 1)
    distance = abs(math.log(found.ratio / target)) / spread

    def power(rounds: int) -> float:
        critical = stats.t.ppf((1 + CONFIDENCE) / 2, rounds - 1)
        return float(stats.nct.sf(critical, rounds - 1, distance * math.sqrt(rounds)))

    planned = range(max(LEAST_ROUNDS, found.rounds + 1), MOST_ROUNDS + 1)
    place = bisect.bisect_left(planned, POWER, key=power)
    return planned[place] if place < len(planned) else None
