# SPDX-License-Identifier: Apache-2.0
"""Whether a ratio is as good as was asked for, and what verdicts are called.

How bad a ratio or a proof is, is a :class:`Level` as that of any
finding; only the words differ.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from scipy import stats

from nova_perfvm.findings import Level
from nova_perfvm.measure.samples import Better
from nova_perfvm.measure.statistics.intervals import (
    LEAST_ROUNDS,
    LEFT_BY_A_MODE,
    MOST_ROUNDS,
    Estimate,
    assured,
    rounds_needed,
)
from nova_perfvm.printable import number_of

_LEVELS: Final = (Level.OK, Level.UNKNOWN, Level.FAILURE)
OF_RATIO: Final = dict(zip(_LEVELS, ("pass", "inconclusive", "fail"), strict=True))
OF_PROOF: Final = dict(zip(_LEVELS, ("PROVEN", "NOT PROVEN", "REFUTED"), strict=True))

# More of the rounds than that in a slow mode are no noise of the machine.
MOST_SLOW: Final = 0.1
# A round of another mode is farther from the median than that, in robust standard
# deviations: one of 400 rounds of normal noise is.
_ANOTHER_MODE: Final = 3
# Laaber, Scheuner and Leitner (Empirical Software Engineering 24, 2019) saw
# coefficients of variation of up to about 100 % on machines that strangers share.
# For tails that is assumed, for throughput on a machine of one's own half of it.
_VARIATION: Final = {"higher": 0.5, "lower": 1.0}


class Judgement(NamedTuple):
    """OK, unknown or a failure, and why."""

    level: Level
    reason: str


def far(better: Better) -> float:
    """Return the factor by which noise alone puts two runs apart in 5 % of cases."""
    return math.exp(1.96 * math.sqrt(2 * math.log1p(_VARIATION[better] ** 2)))


def judge(
    found: Estimate, target: float, better: Better, of_rows: int = 1
) -> Judgement:
    """Judge a ratio by its interval, and by slow modes, seen or possible.

    With too few rounds nothing passes, and only a miss beyond noise fails.  One failed
    row fails all, so a failure needs the interval that is wide enough for all rows; a
    pass takes every row, so each row's own interval is enough.

    :param target: the least that passes where higher is better, else the most
    :param of_rows: how many rows are judged together
    """
    sign = 1 if better == "higher" else -1

    def above(ratio: float) -> float:
        """Return how far a ratio is on the target's better side, as a logarithm."""
        return sign * math.log(ratio / target)

    misses = f"{found.ratio:.3g} misses {target:.3g}"
    all_ends, ends = found.interval(of_rows), found.interval()
    if found.rounds < LEAST_ROUNDS or ends is None or all_ends is None:
        if above(found.ratio) < -math.log(far(better)):
            reason = f"{misses} by more than noise does, though not repeated enough"
            return Judgement(Level.FAILURE, reason)
        rounds = number_of(found.rounds, "round")
        return Judgement(
            Level.UNKNOWN, f"{rounds}: repeat it in at least {LEAST_ROUNDS}"
        )
    if max(map(above, all_ends)) < 0:
        return Judgement(Level.FAILURE, misses)
    if min(map(above, ends)) < 0:
        return Judgement(Level.UNKNOWN, _needs(found, target, better))
    if reason := _modes(found, target, better):
        return Judgement(
            Level.UNKNOWN, f"{found.ratio:.3g} reaches {target:.3g}, {reason}"
        )
    return Judgement(Level.OK, "")


def _modes(found: Estimate, target: float, better: Better) -> str:
    """Return why modes, seen or missed, leave a ratio that passes open; else empty."""
    if len(slow_rounds(found, target, better)) > MOST_SLOW * found.rounds:
        remark = slow_remark(found, target, better)
        return f"but {remark}, and repeat all rounds"
    sign = 1 if better == "higher" else -1
    part = math.log(assured(found, better) / target) * sign
    if part < math.log(LEFT_BY_A_MODE):
        more = _more(found, target, better) or f"{MOST_ROUNDS} cannot tell"
        return f"but {found.rounds} rounds may miss a mode at half speed: {more}"
    return ""


def slow_rounds(found: Estimate, target: float, better: Better) -> list[float]:
    """Return the ratios of rounds that miss 0.9 of the target in a mode of their own.

    :returns: the worst first
    """
    sign = 1 if better == "higher" else -1
    logs = sign * np.log(found.ratios)
    apart = _ANOTHER_MODE * stats.median_abs_deviation(logs, scale="normal")
    missed = sign * math.log(target) + math.log(LEFT_BY_A_MODE)
    limit = min(missed, np.median(logs) - apart)
    slow = [ratio for ratio, log in zip(found.ratios, logs, strict=True) if log < limit]
    return sorted(slow, reverse=better == "lower")


def slow_remark(found: Estimate, target: float, better: Better) -> str:
    """Return the words for rounds in a slow mode; empty without any."""
    slow = slow_rounds(found, target, better)
    if not slow:
        return ""
    part = f"{len(slow)} of {found.rounds} rounds"
    return f"{part} in a slow mode, at {_listed(slow)}: look what ran then"


def _listed(ratios: list[float]) -> str:
    shown = ", ".join(f"{ratio:.3g}" for ratio in ratios[:3])
    return f"{shown} ..." if ratios[3:] else shown


def _needs(found: Estimate, target: float, better: Better) -> str:
    if more := _more(found, target, better):
        return f"the target is within the interval: {more}"
    return f"the ratio is as good as the target: {MOST_ROUNDS} rounds cannot tell"


def _more(found: Estimate, target: float, better: Better) -> str:
    """Return how many rounds would tell; empty where none do."""
    needed = rounds_needed(found, target, better)
    return f"about {needed} rounds would tell" if needed else ""
