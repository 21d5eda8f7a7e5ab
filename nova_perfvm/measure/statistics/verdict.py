# SPDX-License-Identifier: Apache-2.0
"""Whether a ratio is as good as was asked for, and what verdicts are called.

How bad a ratio, a certificate or a proof is, is a :class:`Level` as that of any
finding; only the words differ.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from nova_perfvm.findings import Level
from nova_perfvm.measure.samples import Better
from nova_perfvm.measure.statistics.intervals import (
    LEAST_ROUNDS,
    MOST_ROUNDS,
    Estimate,
    rounds_needed,
)
from nova_perfvm.printable import number_of

_LEVELS: Final = (Level.OK, Level.UNKNOWN, Level.FAILURE)
OF_RATIO: Final = dict(zip(_LEVELS, ("pass", "inconclusive", "fail"), strict=True))
OF_CERTIFICATE: Final = dict(
    zip(_LEVELS, ("certified", "not proven", "refused"), strict=True)
)
OF_PROOF: Final = dict(zip(_LEVELS, ("PROVEN", "NOT PROVEN", "REFUTED"), strict=True))

# The part of the target that each single round has to reach: a VM that is slow in
# one round of ten has a good mean.
WORST_ROUND: Final = 0.9
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
    """Judge a ratio by its interval, and by its worst round.

    Nothing passes without repeats.  What fails without them misses the target by
    more than noise does.  All rows have to pass, so that a pass of all of them is
    wrong as rarely as one of a single row; but one that fails is enough, so that
    each has but its part of the error.

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
        return Judgement(Level.UNKNOWN, _needs(found, target))
    worst_round = found.least if sign > 0 else found.most
    if above(worst_round) < math.log(WORST_ROUND):
        reason = (
            f"{found.ratio:.3g} reaches {target:.3g}, but one of {found.rounds} rounds "
            f"is at {worst_round:.3g}: look what ran then, and repeat all rounds"
        )
        return Judgement(Level.UNKNOWN, reason)
    return Judgement(Level.OK, "")


def _needs(found: Estimate, target: float) -> str:
    needed = rounds_needed(found, target)
    if needed is None:
        return f"the ratio is as good as the target: {MOST_ROUNDS} rounds cannot tell"
    return f"the target is within the interval: about {needed} rounds would tell"
