# SPDX-License-Identifier: Apache-2.0
"""Why this host and not that: what Nova's weighers gave the hosts that pass.

As ``nova.weights``: each weigher's figures are stretched over 0 to 1 among the hosts
that passed, times a multiplier, and added up.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from nova_perfvm.facts.dry_run import SchedulerAnswer, WeigherShare
from nova_perfvm.facts.host_view import HostView

# A change is told with so many digits, and so is at most a hundredth too large.
_DIGITS: Final = 3
_ROUNDING: Final = 1e-9


class MultiplierChange(NamedTuple):
    """Another value of the multiplier of a weigher, which two hosts have in common."""

    weigher: str
    now: float
    value: float

    def __str__(self) -> str:
        """Return it in two lines."""
        return f"{self.weigher}:\n{self.now:.12g} -> {self.value:.12g}"


@dataclass(frozen=True)
class Ranked:
    """A host that passed, with what each weigher adds, in the order of the weighers."""

    view: HostView
    shares: tuple[WeigherShare, ...]

    @cached_property
    def weight(self) -> float:
        """The sum."""
        return sum(share.points for share in self.shares)


@dataclass(frozen=True)
class Ranking:
    """The hosts that passed, the best first.

    :ivar weighers: class names, without their ending
    """

    weighers: tuple[str, ...]
    hosts: tuple[Ranked, ...]

    def smallest_change(self, above: Ranked, below: Ranked) -> MultiplierChange | None:
        """Return the multiplier that has to change least to turn two hosts round.

        The changes are compared as ratios, because some multipliers are 1 and others a
        million.  None where the weights are equal, or where every change would turn the
        sign of a multiplier, which most options do not allow.
        """
        gap = above.weight - below.weight
        found = self._changes(above, below, gap) if gap > _ROUNDING else ()
        return min(found, key=lambda one: abs(one.value / one.now - 1), default=None)

    def _changes(
        self, above: Ranked, below: Ranked, gap: float
    ) -> Iterator[MultiplierChange]:
        for name, a, b in zip(self.weighers, above.shares, below.shares, strict=True):
            if a.normalised != b.normalised and a.multiplier == b.multiplier != 0:
                by = gap / (b.normalised - a.normalised)
                value = _past(a.multiplier, by)
                if value * a.multiplier > 0:
                    yield MultiplierChange(name, a.multiplier, value)


def _past(now: float, by: float) -> float:
    """Return a value of few digits that is a little further off than told."""
    step = 10.0 ** (math.floor(math.log10(abs(by))) - _DIGITS + 1)
    # Rounding must not turn a whole number of steps into one fewer.
    steps = math.floor(abs(by) / step + 1e-6) + 1
    return float(f"{now + math.copysign(steps * step, by):.12g}")


def ranking(answer: SchedulerAnswer, views: Sequence[HostView]) -> Ranking:
    """Return the hosts that passed, as Nova's scheduler orders them."""
    by_provider = {view.compute.provider: view for view in views}
    # PerfVMFilter lets Nova try a host of units once for each of its children.
    best = dict(reversed(answer.ranked))
    order = dict.fromkeys(uuid for uuid, _ in answer.ranked if uuid in by_provider)
    return Ranking(
        tuple(name.removesuffix("Weigher") for name in answer.weighers),
        tuple(Ranked(by_provider[uuid], best[uuid]) for uuid in order),
    )
