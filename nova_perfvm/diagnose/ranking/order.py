# SPDX-License-Identifier: Apache-2.0
"""Order hosts as nova-scheduler does, and find what would turn two of them round.

As ``nova.weights`` of Nova 34: each weigher's figures are stretched over 0 to 1 among
the hosts that passed, times a multiplier, and added up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, NamedTuple

from nova_perfvm.diagnose.ranking.weighers import (
    SECTION,
    Case,
    Weigher,
    number,
    weighers_of,
)
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.generate.options import FileOptions
from nova_perfvm.placement.settings import is_true
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

# Nova adds up in another order, so that nearly equal weights may be equal there.
_ROUNDING: Final = 1e-14
# A change is told with so many digits, and so is at most a hundredth too large.
_DIGITS: Final = 3
_SHUFFLE: Final = "shuffle_best_same_weighed_hosts"
_SUBSET: Final = "host_subset_size"


class WeigherShare(NamedTuple):
    """What one weigher adds to one host's weight.

    :ivar raw: None where it is not known, and taken to be the same on all hosts
    :ivar normalised: among the hosts that passed
    :ivar aggregate: whose metadata tells the multiplier; empty for the option
    """

    raw: float | None
    normalised: float
    multiplier: float
    aggregate: str

    @property
    def points(self) -> float:
        """What is added."""
        return self.multiplier * self.normalised if self.normalised else 0.0

    def figures(self) -> dict[str, float | str | None]:
        """Return all of it by name; no multiplier where nobody knows it."""
        known = self.multiplier if math.isfinite(self.multiplier) else None
        return {**self._asdict(), "multiplier": known, "points": self.points}


class MultiplierChange(NamedTuple):
    """Another value of a multiplier.

    :ivar aggregate: whose metadata it is; empty for the option
    """

    weigher: Weigher
    aggregate: str
    now: float
    value: float

    def __str__(self) -> str:
        """Return it in two lines."""
        where = f" of {self.aggregate}" if self.aggregate else ""
        return f"{self.weigher.column}{where}:\n{self.now:.12g} -> {self.value:.12g}"

    def figures(self) -> dict[str, float | str]:
        """Return all of it by name."""
        section, option = self.weigher.option
        name = self.weigher.key if self.aggregate else f"[{section}]{option}"
        named = {"weigher": self.weigher.name, "multiplier": name}
        return {**self._asdict(), **named}


@dataclass(frozen=True)
class Ranked:
    """A host with what each weigher adds, in the order of the weighers."""

    case: Case
    shares: tuple[WeigherShare, ...]

    @cached_property
    def weight(self) -> float:
        """The sum."""
        return math.fsum(share.points for share in self.shares)

    @cached_property
    def rounding(self) -> float:
        """By how much Nova's sum may differ."""
        return _ROUNDING * math.fsum(abs(share.points) for share in self.shares)


def equal(above: Ranked, below: Ranked) -> bool:
    """Return whether the weights of two hosts are the same, rounding aside."""
    gap = abs(above.weight - below.weight)
    return gap <= above.rounding + below.rounding


@dataclass(frozen=True)
class Ranking:
    """The hosts that passed, the best first.

    :ivar weighers: those that are asked; none where there is one host
    """

    options: FileOptions
    weighers: tuple[Weigher, ...]
    hosts: tuple[Ranked, ...]

    @cached_property
    def unknown(self) -> list[int]:
        """Which weighers have a say and are not known from here."""
        shares = zip(*(host.shares for host in self.hosts), strict=True)
        return [
            index
            for index, mine in enumerate(shares)
            if any(s.raw is None for s in mine) and any(s.multiplier for s in mine)
        ]

    def rests_on(self, above: Ranked, below: Ranked) -> list[Weigher]:
        """Return the weighers that, not being known, may turn two hosts round."""
        swings = [
            _swing(*found)
            for found in zip(self.weighers, above.shares, below.shares, strict=True)
        ]
        if above.weight - below.weight > sum(swings[index] for index in self.unknown):
            return []
        return [self.weighers[index] for index in self.unknown if swings[index]]

    def smallest_change(self, above: Ranked, below: Ranked) -> MultiplierChange | None:
        """Return the multiplier that has to change least to turn two hosts round.

        None where they are equal, and where none does it.
        """
        if equal(above, below):
            return None
        found = (c for c in self._changes(above, below) if self._turns(c, above, below))
        return min(found, key=lambda c: abs(c.value - c.now), default=None)

    def _changes(self, above: Ranked, below: Ranked) -> Iterator[MultiplierChange]:
        """Yield a change of each multiplier by which the two differ."""
        gap = above.weight - below.weight
        for weigher, *shares in zip(
            self.weighers, above.shares, below.shares, strict=True
        ):
            for source in sorted({share.aggregate for share in shares}):
                a, b = (s.normalised * (s.aggregate == source) for s in shares)
                if a == b:
                    continue
                multiplier = next(s.multiplier for s in shares if s.aggregate == source)
                now = multiplier * weigher.sign
                value = _past(now, gap / (b - a) * weigher.sign)
                if source or value >= weigher.floor:
                    yield MultiplierChange(weigher, source, now, value)

    def _turns(self, change: MultiplierChange, *pair: Ranked) -> bool:
        """Weigh both again, as of several aggregates the smallest value counts."""
        at = self.weighers.index(change.weigher)
        changed = []
        for host in pair:
            value, _ = _multiplier(host.case, change.weigher, change)
            mine = host.shares[at]._replace(multiplier=value)
            shares = (*host.shares[:at], mine, *host.shares[at + 1 :])
            changed.append(replace(host, shares=shares))
        above, below = changed
        return below.weight > above.weight and not equal(above, below)

    def notes(self) -> Iterator[str]:
        """Yield what else decides, and what is not known."""
        if len(self.hosts) == 1:
            yield "one host is left, which nova-scheduler does not weigh"
        pairs = list(pairwise(self.hosts))
        if names := ", ".join(self.weighers[index].column for index in self.unknown):
            unsure = sum(bool(self.rests_on(*pair)) for pair in pairs)
            yield (
                f"not known from here, and taken to be the same on all hosts: {names}; "
                f"so {unsure} of {number_of(len(pairs), 'neighbour')} may be the other "
                "way round: --from-nova-db reads more on a controller"
            )
        if any(equal(*pair) for pair in pairs):
            yield "hosts with equal sums follow Nova's own list of hosts"
        if is_true(self.options.get((SECTION, _SHUFFLE), "")):
            yield f"{_SHUFFLE}: those equal to the first are mixed"
        if (most := int(number(self.options, (SECTION, _SUBSET), 1))) > 1:
            yield f"{_SUBSET}: one of the first {most} is taken"


def _swing(weigher: Weigher, above: WeigherShare, below: WeigherShare) -> float:
    """Return by how much a weigher could favour the lower host at most."""
    # Ours goes from -1 to 1.
    ends = (-1.0 if weigher.maxval else 0.0, 1.0)
    lost = min(end * above.multiplier if end else 0.0 for end in ends)
    return max(end * below.multiplier if end else 0.0 for end in ends) - lost


def _past(now: float, by: float) -> float:
    """Return a value of few digits that is a little further off than told."""
    step = 10.0 ** (math.floor(math.log10(abs(by))) - _DIGITS + 1)
    steps = math.floor(abs(by) / step) + 1
    return float(f"{now + math.copysign(steps * step, by):.12g}")


def _multiplier(
    case: Case, weigher: Weigher, change: MultiplierChange | None = None
) -> tuple[float, str]:
    """Return a multiplier, and which aggregate tells it.

    As ``nova.scheduler.utils.get_weight_multiplier``: the smallest that is told;
    the option where one of them is no number.
    """
    told: dict[str, str | float] = {
        aggregate.name: aggregate.metadata[weigher.key]
        for aggregate in case.view.aggregates
        if weigher.key in aggregate.metadata
    }
    option = number(case.options, weigher.option, weigher.default)
    if change is not None and change.aggregate in told:
        told[change.aggregate] = change.value
    elif change is not None and not change.aggregate:
        option = change.value
    try:
        found = [(float(value), name) for name, value in told.items()]
    except ValueError:
        found = []
    value, source = min(found, default=(option, ""))
    return value * weigher.sign, source


def rank(
    policy: Policy,
    request: Request,
    views: Sequence[HostView],
    options: FileOptions | None,
) -> Ranking:
    """Order the hosts that would take a request.

    :param views: of these hosts
    :param options: of nova-scheduler's nova.conf; None: Nova's defaults, our weigher
    :raises PerfVMError: when an option is no number
    """
    server = views[0].cloud.server_by_id.get(request.server) if views else None
    moving = server if server is not None and server.built else None
    cases = [Case(policy, request, view, moving, options or {}) for view in views]
    weighers = weighers_of(options) if views[1:] else ()
    rows: list[tuple[WeigherShare, ...]] = [()] * len(cases)
    for weigher in weighers:
        raws = [weigher.raw(case) for case in cases]
        figures = zip(cases, raws, weigher.normalised(raws), strict=True)
        rows = [
            (*row, WeigherShare(raw, normalised, *_multiplier(case, weigher)))
            for row, (case, raw, normalised) in zip(rows, figures, strict=True)
        ]
    hosts = sorted(map(Ranked, cases, rows), key=lambda host: -host.weight)
    return Ranking(options or {}, weighers, tuple(hosts))
