# SPDX-License-Identifier: Apache-2.0
"""How long a live migration takes, and whether it converges: QEMU's rounds, modelled.

A round sends what is dirty until the rest fits into the downtime, then asks which pages
were written meanwhile (QEMU 7.2, ``migration/migration.c`` and ``ram.c``). Sizes are in
MiB, times in seconds, rates in MiB per second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

Outcome = Literal["converges", "post-copy", "paused", "aborted", "never"]

# A page, and with what QEMU sends along: bytes.
_PAGE, _SENT = 4096, 4104
# QEMU looks what is left after so long: where it keeps to a bandwidth, else.
_WINDOW_S, _ITERATION_S = 0.1, 0.05
# Shares of the guest's CPU time that auto-converge takes: at first, each time more, at
# most. It acts on the second of the periods in which more than a share of what was sent
# was written.
_FIRST_THROTTLE, _MORE_THROTTLE, _MOST_THROTTLE = 0.2, 0.1, 0.99
_PERIOD_S, _HIGH_SHARE, _HIGH_COUNT = 1.0, 0.5, 2
# Where more of a set was written to in a period, nobody can tell how often.
_MOST_SHARE: Final = 0.99
# A round that leaves so little less than the one before leads nowhere.
_STEADY: Final = 1e-4


@dataclass(frozen=True)
class Writing:
    """The memory of a guest, and how it writes to it: to random pages of a set.

    :ivar memory: all that is to be sent
    :ivar rate: of writes, each to a page
    :ivar working_set: the pages that it writes to
    """

    memory: float
    rate: float
    working_set: float

    @classmethod
    def measured(
        cls, memory: float, rate: float, period_s: float, working_set: float
    ) -> Writing:
        """Return that of which ``calc-dirty-rate`` of QEMU has told a dirty rate.

        It counts a page once in its period, however often that is written to.
        """
        working_set = max(min(working_set, memory), 1.0)
        share = min(rate * period_s / working_set, _MOST_SHARE)
        return cls(memory, -math.log1p(-share) * working_set / period_s, working_set)

    def dirtied(self, time_s: float, throttle: float) -> float:
        """Return the memory that was written to at least once in a time."""
        written = self.rate * (1 - throttle) * time_s
        return -math.expm1(-written / self.working_set) * self.working_set


@dataclass(frozen=True)
class Limits:
    """What a live migration may cost.

    :ivar downtimes: (after this time, the guest may stand still for so long), in order
    :ivar timeout_s: when the action is taken: abort, pause or post-copy; 0 for never
    :ivar auto_converge: whether QEMU may throttle the guest
    """

    downtimes: tuple[tuple[float, float], ...]
    timeout_s: float = 0
    action: str = "abort"
    auto_converge: bool = False

    def downtime_s(self, time_s: float) -> float:
        """Return what is allowed at a time."""
        return [most for after, most in self.downtimes if after <= time_s][-1]

    def next_s(self, time_s: float) -> float:
        """Return when something changes for a migration that gets nowhere."""
        steps = [after for after, _ in self.downtimes] + [self.timeout_s]
        return min((step for step in steps if step > time_s), default=math.inf)


@dataclass(frozen=True)
class Forecast:
    """What becomes of a live migration.

    :ivar outcome: converges by itself; or what happens after the timeout
    :ivar time_s: until it is over, in one way or another
    :ivar downtime_s: for how long the guest stands still
    :ivar throttle: the share of its CPU time that auto-converge took in the end
    """

    outcome: Outcome
    time_s: float
    downtime_s: float = 0.0
    throttle: float = 0.0

    @property
    def moved(self) -> bool:
        """Whether the guest is on its target afterwards."""
        return self.outcome not in {"aborted", "never"}

    @property
    def minutes(self) -> float | None:
        """Its time; None if it never ends."""
        return None if self.outcome == "never" else round(self.time_s / 60, 1)

    def __str__(self) -> str:
        """Return whether it converges, in words."""
        words = {"converges": "yes", "aborted": "no", "never": "no"}
        throttled = f", throttled by {self.throttle:.0%}" if self.throttle else ""
        return words.get(self.outcome, self.outcome) + throttled


def forecast(
    guest: Writing, bandwidth: float, limits: Limits, link: float = 0.0
) -> Forecast:
    """Return what becomes of a live migration.

    :param bandwidth: what the migration may use
    :param link: what there is, if that is more; QEMU keeps to the bandwidth only while
        the guest runs
    """
    link = max(link, bandwidth)
    look_s = _WINDOW_S if bandwidth < link else _ITERATION_S
    speed, fastest = (one * _PAGE / _SENT for one in (bandwidth, link))
    timeout_s = limits.timeout_s or math.inf
    chunk = speed * look_s
    now, left, scope, throttle = 0.0, guest.memory, guest.memory, 0.0
    period_s = period_sent = period_written = high = 0.0
    while now < math.inf:
        allowed = speed * limits.downtime_s(now)
        if left < allowed:
            took = left / fastest
            return Forecast("converges", now + took, took, throttle)
        looks = max(0, math.ceil((left - max(allowed, chunk)) / chunk))
        took, kept = looks * look_s, left - looks * chunk
        if kept >= allowed:
            # Less than it may send before it looks again: it goes at once.
            took, kept = took + kept / fastest, 0.0
        if late := now + took > timeout_s:
            took = max(0.0, timeout_s - now)
            kept = max(0.0, left - took * speed)
        # Some of what was written has not been sent yet anyway.
        written = guest.dirtied(took, throttle) * (1 - min(1.0, kept / scope))
        sent, steady = left - kept, kept + written > left * (1 - _STEADY)
        now, left, scope = now + took, kept + written, guest.working_set
        if late:
            return _forced(limits.action, now, left / speed, left / fastest, throttle)
        if limits.auto_converge and throttle < _MOST_THROTTLE:
            period_s, period_sent = period_s + took, period_sent + sent
            period_written += written
            if period_s >= _PERIOD_S:
                high += period_written > period_sent * _HIGH_SHARE
                period_s = period_sent = period_written = 0.0
            if high == _HIGH_COUNT:
                more = throttle + _MORE_THROTTLE if throttle else _FIRST_THROTTLE
                throttle, high = min(more, _MOST_THROTTLE), 0
        elif steady:
            now = limits.next_s(now)
    return Forecast("never", math.inf, throttle=throttle)


def _forced(
    action: str, now: float, paused_s: float, copy_s: float, throttle: float
) -> Forecast:
    """Return what becomes of a migration at the timeout."""
    if action == "abort":
        return Forecast("aborted", now, throttle=throttle)
    if action == "post-copy":
        return Forecast("post-copy", now + copy_s, throttle=throttle)
    return Forecast("paused", now + paused_s, paused_s, throttle)
