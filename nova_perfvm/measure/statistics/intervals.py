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
    :ivar spread: standard deviation of the logarithm of a round's ratio, as far
        as the interval rests on it
    :ivar drifts: whether the ratio of a round is like that of the round before,
        for which the interval was widened
    """

    ratio: float
    low: float | None
    high: float | None
    rounds: int
    spread: float | None = None
    drifts: bool = False


def estimate(ratios: Sequence[float]) -> Estimate:
    """Return the estimate of a ratio from that of each round, in their order.

    :param ratios: at least one, each above 0
    """
    logs = np.log(np.asarray(ratios, dtype=float))
    rounds, mean = len(logs), float(np.mean(logs))
    if rounds == 1:
        return Estimate(math.exp(mean), None, None, 1)
    effective = effective_rounds(logs)
    # The deviation from a mean of values that resemble each other is too small.
    spread = float(np.std(logs, ddof=1)) * math.sqrt(
        (rounds - 1) / max(rounds - rounds / effective, 0.5)
    )
    spread = spread if spread > _NONE else 0.0
    half = half_width(spread, effective)
    return Estimate(
        ratio=math.exp(mean),
        low=math.exp(mean - half),
        high=math.exp(mean + half),
        rounds=rounds,
        spread=spread * math.sqrt(rounds / effective),
        drifts=effective < rounds,
    )


def half_width(spread: float, rounds: float) -> float:
    """Return half of the interval of a mean of logarithms.

    :param spread: standard deviation of one of them
    :param rounds: how many independent ones there are; may be a fraction
    """
    if spread == 0:
        return 0.0
    scale = spread / math.sqrt(rounds)
    freedom = max(rounds - 1, 1)
    return float(stats.t.interval(CONFIDENCE, freedom, scale=scale)[1])


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
    """Return how many rounds would tell the ratio from a target.

    If ratio and spread stay what they are; None where more than
    ``MOST_ROUNDS`` would not do, or nothing is known of the spread.
    """
    if found.spread is None:
        return LEAST_ROUNDS
    distance = abs(math.log(found.ratio / target))
    fewest = max(LEAST_ROUNDS, found.rounds + 1)
    for rounds in range(fewest, MOST_ROUNDS + 1):
        if half_width(found.spread, rounds) < distance:
            return rounds
    return None
