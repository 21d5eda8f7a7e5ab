# SPDX-License-Identifier: Apache-2.0
"""Explain the order of the passing hosts by the figures of Nova's weighers.

As in ``nova.weights``: a weigher's figures are scaled to 0 to 1 among the passing hosts
and multiplied by its multiplier; a host's weight is their sum.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from nova_perfvm.facts.dry_run import SchedulerAnswer, WeigherShare
from nova_perfvm.facts.host_view import HostView

# A proposed multiplier has this many digits, so it is at most a hundredth too large.
_DIGITS: Final = 3
_ROUNDING: Final = 1e-9


class MultiplierChange(NamedTuple):
    """A new value for a weigher's multiplier, which is the same for two hosts."""

    weigher: str
    now: float
    value: float

    def __str__(self) -> str:
        return f"{self.weigher}:\n{self.now:.12g} -> {self.value:.12g}"


@dataclass(frozen=True)
class Ranked:
    """A passing host with its share from each weigher, in the order of the weighers."""

    view: HostView
    shares: Sequence[WeigherShare]

    @cached_property
    def weight(self) -> float:
        """The sum of all shares."""
        return sum(share.points for share in self.shares)


@dataclass(frozen=True)
class Ranking:
    """The passing hosts, the best first.

    :ivar weighers: class names, without the ending "Weigher"
    """

    weighers: tuple[str, ...]
    hosts: tuple[Ranked, ...]

    def smallest_change(self, above: Ranked, below: Ranked) -> MultiplierChange | None:
        """Return the multiplier that must change least to swap two hosts.

        Changes are compared as ratios, because some multipliers are 1 and others a
        million.  None if the weights are equal, or if every change would change a
        multiplier's sign, which most options do not allow.
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
    """Return `now` changed by a little more than `by`, with few digits."""
    step = 10.0 ** (math.floor(math.log10(abs(by))) - _DIGITS + 1)
    # Rounding must not turn a whole number of steps into one fewer.
    steps = math.floor(abs(by) / step + 1e-6) + 1
    return float(f"{now + math.copysign(steps * step, by):.12g}")


def ranking(answer: SchedulerAnswer, views: Sequence[HostView]) -> Ranking:
    """Return the passing hosts in the order of Nova's scheduler."""
    by_provider = {view.compute.provider: view for view in views}
    # PerfVMFilter lets Nova try a host of units once for each of its children.
    best = dict(reversed(answer.ranked))
    order = dict.fromkeys(uuid for uuid, _ in answer.ranked if uuid in by_provider)
    return Ranking(
        tuple(name.removesuffix("Weigher") for name in answer.weighers),
        tuple(Ranked(by_provider[uuid], best[uuid]) for uuid in order),
    )
