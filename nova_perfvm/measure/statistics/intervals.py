# SPDX-License-Identifier: Apache-2.0
"""The interval of a ratio that was measured several times.

The logarithms of the ratios of rounds are averaged, and Student's t gives the
interval.  Within a round both sides meet the same neighbours, clock and
temperature, so what drifts from round to round is in both and cancels; who comes
first is drawn by lot, so that what remains does not lean to one side (randomized
multiple interleaved trials: Abedi and Brecht, ICPE 2017).

No interval of seen rounds holds a mode that no round met: one in five runs at half
speed is missed by ten rounds in 11 % of cases.  :func:`assured` bounds that.
doc/source/contributor/statistics.rst has what ``tests/benchmark/coverage.py`` and
``tests/benchmark/proof.py`` measure of both.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy import special

from nova_perfvm.measure.samples import Better

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
# The logarithm of half speed, an assumption: a vCPU that shares its CPU with another
# one, or memory on another node, is no slower.
_HALF: Final = math.log(2)
# The part of the target that an unseen mode has to leave.
LEFT_BY_A_MODE: Final = 0.9
# Of 2.5 %, 8,000 draws miss by 0.17 points (standard error).
_DRAWS: Final = 8000
# What rounding leaves of no deviation.
_NONE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio and its uncertainty.

    :ivar ratio: geometric mean over the rounds
    :ivar ratios: ratio of each round, in the order of the rounds
    :ivar spread: standard deviation of the logarithm of a round's ratio; None for a
        single round
    :ivar effective: number of independent rounds with the same information
    """

    ratio: float
    ratios: tuple[float, ...]
    spread: float | None = None
    effective: float = 1

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.ratios)

    @property
    def drifts(self) -> bool:
        """Whether a round's ratio resembles that of the round before."""
        return self.effective < self.rounds

    def interval(self, of_rows: int = 1) -> tuple[float, float] | None:
        """Return the ends of the 95 % interval, wide enough for several rows at once.

        :param of_rows: number of rows judged together; each row gets its part of the
            error (Bonferroni), so that in 95 % of cases all intervals hold
        :returns: None for a single round
        """
        if self.spread is None:
            return None
        error = (1 - CONFIDENCE) / of_rows
        factor = _factor(self.spread, self.rounds, self.effective, error)
        return self.ratio / factor, self.ratio * factor


def estimate(ratios: Sequence[float]) -> Estimate:
    """Return the estimate of a ratio from the ratios of rounds, in their order.

    :param ratios: at least one, each above 0
    """
    logs = np.log(np.asarray(ratios, dtype=float))
    rounds, ratio = len(logs), math.exp(np.mean(logs))
    each = tuple(map(float, ratios))
    if rounds == 1:
        return Estimate(ratio, each)
    effective = effective_rounds(logs)
    # The deviation from a mean of values that resemble each other is too small.
    spread = float(np.std(logs, ddof=1)) * math.sqrt(
        (rounds - 1) / max(rounds - rounds / effective, 0.5)
    )
    return Estimate(ratio, each, spread if spread > _NONE else 0.0, effective)


def assured(found: Estimate, better: Better) -> float:
    """Return the ratio that is reached even with a slow mode that no round met.

    The Bayesian bootstrap (Rubin, Annals of Statistics 9, 1981) weighs the logarithms
    of the rounds, and of one round more that was not seen, at half the speed of their
    mean, or as slow as the slowest.  With the least possible value as that round it
    is the bound of a mean in 97.5 % of cases whatever the law (Learned-Miller and
    Thomas, arXiv:1905.06208), here so far as a mode is no slower.

    :param found: of two rounds or more
    """
    sign = 1 if better == "higher" else -1
    logs = sign * np.log(found.ratios)
    rounds, mean, deviation = len(logs), np.mean(logs), np.std(logs, ddof=1)
    wider = 1.0
    if found.drifts and found.spread is not None:
        wider = found.spread / deviation * math.sqrt(rounds / found.effective)
    unseen = min(mean - _HALF, *logs)
    means = _weights(rounds) @ np.append(mean + wider * (logs - mean), unseen)
    return math.exp(sign * np.quantile(means, (1 - CONFIDENCE) / 2))


@functools.lru_cache(maxsize=4)
def _weights(rounds: int) -> np.ndarray[Any, Any]:
    """Return draws of weights: a row each, one column a round, the unseen one last."""
    return np.random.default_rng(rounds).dirichlet(np.ones(rounds + 1), _DRAWS)


def _factor(spread: float, rounds: int, effective: float, error: float) -> float:
    """Return the factor between a ratio and the ends of its interval.

    A drift is guessed from few rounds: an interval that is widened for one rests on
    no fewer degrees of freedom than that of the fewest rounds.

    :param error: share of cases in which the ratio may be beyond the ends
    """
    freedom = effective - 1
    if effective < rounds:
        freedom = max(freedom, LEAST_ROUNDS - 1)
    quantile = float(special.stdtrit(freedom, 1 - error / 2))
    half = quantile * spread / math.sqrt(effective)
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


def rounds_needed(found: Estimate, target: float, better: Better) -> int | None:
    """Return how many rounds tell a ratio from a target in 85 % of cases.

    If the ratio is what it seems; None where more than ``MOST_ROUNDS`` would not do.
    """
    if found.spread is None:
        return LEAST_ROUNDS
    freedom = found.rounds - 1
    below = freedom / special.chdtri(freedom, _SPREAD_BELOW)
    spread = found.spread * math.sqrt(below * found.rounds / found.effective)
    spread = max(spread, _NONE)
    above = math.log(found.ratio / target) * (1 if better == "higher" else -1)

    def power(rounds: int) -> float:
        error = spread / math.sqrt(rounds)
        critical = special.stdtrit(rounds - 1, (1 + CONFIDENCE) / 2)
        told = special.nctdtr(rounds - 1, abs(above) / error, critical)
        if above < 0:
            return float(1 - told)
        # A mode that is missed in 2.5 % of cases, and the error of what was seen.
        mode = _HALF * (1 - ((1 - CONFIDENCE) / 2) ** (1 / rounds))
        lost = math.hypot(mode, special.ndtri((1 + CONFIDENCE) / 2) * error)
        left = above - math.log(LEFT_BY_A_MODE) - lost
        return float(min(1 - told, special.ndtr(left / error)))

    planned = range(max(LEAST_ROUNDS, found.rounds + 1), MOST_ROUNDS + 1)
    place = bisect.bisect_left(planned, POWER, key=power)
    return planned[place] if place < len(planned) else None
