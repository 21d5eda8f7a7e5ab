# SPDX-License-Identifier: Apache-2.0
"""Whether a ratio is as good as was asked for."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from nova_perfvm.measure.samples import Better
from nova_perfvm.measure.statistics.intervals import (
    LEAST_ROUNDS,
    MOST_ROUNDS,
    Estimate,
    rounds_needed,
)
from nova_perfvm.printable import number_of

# Laaber, Scheuner and Leitner (Empirical Software Engineering 24, 2019) saw
# coefficients of variation of up to about 100 % in clouds.  The ratio of two
# runs with that (log-normal) is off by more than this factor in 5 % of cases.
FAR: Final = math.exp(1.96 * math.sqrt(2 * math.log(1 + 1.0**2)))


class Verdict(enum.Enum):
    """What a statistical test says of a ratio; how bad a finding is, is a Level."""

    PASS = "pass"  # noqa: S105
    INCONCLUSIVE = "inconclusive"
    FAIL = "fail"

    @property
    def exit_code(self) -> int:
        """What a command ends with if this is the worst."""
        return {Verdict.INCONCLUSIVE: 1, Verdict.FAIL: 2}.get(self, 0)


class Judgement(NamedTuple):
    """A verdict and why."""

    verdict: Verdict
    reason: str


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of verdicts; without any, nothing is concluded."""
    order = list(Verdict)
    return max(verdicts, key=order.index, default=Verdict.INCONCLUSIVE)


def judge(found: Estimate, target: float, better: Better) -> Judgement:
    """Judge a ratio by its interval.

    Nothing passes without repeats.  What fails without them misses the target by
    more than ``FAR``, which no noise that is known explains.

    :param target: the least that passes where higher is better, else the most
    """
    sign = 1 if better == "higher" else -1
    # How far above the target, on the side that is better.
    excess = sign * math.log(found.ratio / target)
    misses = f"{found.ratio:.3g} misses {target:.3g}"
    if found.rounds < LEAST_ROUNDS or found.low is None or found.high is None:
        if excess < -math.log(FAR):
            reason = f"{misses} by more than noise does, though not repeated enough"
            return Judgement(Verdict.FAIL, reason)
        reason = (
            f"{number_of(found.rounds, 'round')}: repeat it in at least {LEAST_ROUNDS}"
        )
        return Judgement(Verdict.INCONCLUSIVE, reason)
    ends = sorted(sign * math.log(end / target) for end in (found.low, found.high))
    if ends[0] >= 0:
        return Judgement(Verdict.PASS, "")
    if ends[1] < 0:
        return Judgement(Verdict.FAIL, misses)
    return Judgement(Verdict.INCONCLUSIVE, _needs(found, target))


def _needs(found: Estimate, target: float) -> str:
    needed = rounds_needed(found, target)
    if needed is None:
        return f"the ratio is as good as the target: {MOST_ROUNDS} rounds cannot tell"
    return f"the target is within the interval: about {needed} rounds would tell"
