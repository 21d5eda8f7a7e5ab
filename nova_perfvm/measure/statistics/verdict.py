# SPDX-License-Identifier: Apache-2.0
"""Whether a ratio is as good as was asked for."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from nova_perfvm.findings import Level, exit_code
from nova_perfvm.measure.samples import Better
from nova_perfvm.measure.statistics.intervals import (
    LEAST_ROUNDS,
    MOST_ROUNDS,
    Estimate,
    rounds_needed,
)
from nova_perfvm.printable import number_of

# The part of the target that each single round has to reach: a VM that is slow in
# one round of ten has a good mean.
WORST_ROUND: Final = 0.9
# Laaber, Scheuner and Leitner (Empirical Software Engineering 24, 2019) saw
# coefficients of variation of up to about 100 % on machines that strangers share.
# For tails that is assumed, for throughput on a machine of one's own half of it.
_VARIATION: Final = {"higher": 0.5, "lower": 1.0}


class Verdict(enum.Enum):
    """What a statistical test says of a ratio; how bad a finding is, is a Level."""

    PASS = "pass"  # noqa: S105
    INCONCLUSIVE = "inconclusive"
    FAIL = "fail"

    @property
    def level(self) -> Level:
        """How bad it is."""
        return (Level.OK, Level.UNKNOWN, Level.FAILURE)[list(Verdict).index(self)]

    @property
    def exit_code(self) -> int:
        """What a command ends with if this is the worst."""
        return exit_code(self.level, strict=True)


class Judgement(NamedTuple):
    """A verdict and why."""

    verdict: Verdict
    reason: str


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of verdicts; without any, nothing is concluded."""
    order = list(Verdict)
    return max(verdicts, key=order.index, default=Verdict.INCONCLUSIVE)


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
            return Judgement(Verdict.FAIL, reason)
        reason = (
            f"{number_of(found.rounds, 'round')}: repeat it in at least {LEAST_ROUNDS}"
        )
        return Judgement(Verdict.INCONCLUSIVE, reason)
    if max(map(above, all_ends)) < 0:
        return Judgement(Verdict.FAIL, misses)
    if min(map(above, ends)) < 0:
        return Judgement(Verdict.INCONCLUSIVE, _needs(found, target))
    worst_round = found.least if sign > 0 else found.most
    if above(worst_round) < math.log(WORST_ROUND):
        reason = (
            f"{found.ratio:.3g} reaches {target:.3g}, but one of {found.rounds} rounds "
            f"is at {worst_round:.3g}: look what ran then, and repeat all rounds"
        )
        return Judgement(Verdict.INCONCLUSIVE, reason)
    return Judgement(Verdict.PASS, "")


def _needs(found: Estimate, target: float) -> str:
    needed = rounds_needed(found, target)
    if needed is None:
        return f"the ratio is as good as the target: {MOST_ROUNDS} rounds cannot tell"
    return f"the target is within the interval: about {needed} rounds would tell"
