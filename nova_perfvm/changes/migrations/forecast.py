# SPDX-License-Identifier: Apache-2.0
"""Model QEMU's rounds to forecast a live migration: its time and convergence.

A round sends dirty pages until the rest fits into the downtime, then QEMU asks which
pages were written meanwhile (QEMU 7.2, ``migration/migration.c`` and ``ram.c``).  Sizes
are in MiB, times in seconds, rates in MiB per second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

Outcome = Literal["converges", "post-copy", "paused", "aborted", "never"]

# Bytes of a page, and of a page with QEMU's header.
_PAGE, _SENT = 4096, 4104
# Interval at which QEMU checks the remaining data: with a bandwidth limit, without one.
_WINDOW_S, _ITERATION_S = 0.1, 0.05
# Shares of the guest's CPU time that auto-converge takes: first, added each time, at
# most. It acts in the second period in which more than a share of the sent data was
# written.
_FIRST_THROTTLE, _MORE_THROTTLE, _MOST_THROTTLE = 0.2, 0.1, 0.99
_PERIOD_S, _HIGH_SHARE, _HIGH_COUNT = 1.0, 0.5, 2
# If more of the set was written in a period, the number of writes cannot be inferred.
_MOST_SHARE: Final = 0.99
# A round that reduces the rest by less than this share makes no progress.
_STEADY: Final = 1e-4


@dataclass(frozen=True)
class Writing:
    """The memory of a guest that writes to random pages of a working set.

    :ivar memory: the memory to send
    :ivar rate: MiB of pages written per second, a page as often as the guest writes it
    :ivar working_set: MiB of the pages that the guest writes to
    """

    memory: float
    rate: float
    working_set: float

    @classmethod
    def measured(
        cls, memory: float, rate: float, period_s: float, working_set: float
    ) -> Writing:
        """Return the Writing for a dirty rate measured by QEMU's ``calc-dirty-rate``.

        QEMU counts a page once per period, however often the page is written.
        """
        working_set = max(min(working_set, memory), 1.0)
        share = min(rate * period_s / working_set, _MOST_SHARE)
        return cls(memory, -math.log1p(-share) * working_set / period_s, working_set)

    def dirtied(self, time_s: float, throttle: float) -> float:
        """Return the MiB that a guest, throttled by a share, writes at least once."""
        written = self.rate * (1 - throttle) * time_s
        return -math.expm1(-written / self.working_set) * self.working_set


@dataclass(frozen=True)
class Limits:
    """The limits of a live migration.

    :ivar downtimes: (after this time, the allowed downtime), in order
    :ivar timeout_s: when `action` is taken; 0 for never
    :ivar action: abort, pause or post-copy
    :ivar auto_converge: whether QEMU may throttle the guest
    """

    downtimes: tuple[tuple[float, float], ...]
    timeout_s: float = 0
    action: str = "abort"
    auto_converge: bool = False

    def downtime_s(self, time_s: float) -> float:
        """Return the downtime that is allowed after a time."""
        return [most for after, most in self.downtimes if after <= time_s][-1]

    def next_s(self, time_s: float) -> float:
        """Return when a limit changes next; infinity if none does."""
        steps = [after for after, _ in self.downtimes] + [self.timeout_s]
        return min((step for step in steps if step > time_s), default=math.inf)


@dataclass(frozen=True)
class Forecast:
    """The forecast of a live migration.

    :ivar outcome: converges by itself; or what happens at the timeout
    :ivar time_s: until the migration has ended, whatever its outcome
    :ivar downtime_s: how long the guest is paused
    :ivar throttle: the share of the guest's CPU time that auto-converge took at last
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
        """The minutes that the migration takes; None if it never ends."""
        return None if self.outcome == "never" else round(self.time_s / 60, 1)

    def __str__(self) -> str:
        """Return whether the migration converges, in words."""
        words = {"converges": "yes", "aborted": "no", "never": "no"}
        throttled = f", throttled by {self.throttle:.0%}" if self.throttle else ""
        return words.get(self.outcome, self.outcome) + throttled


def forecast(
    guest: Writing, bandwidth: float, limits: Limits, link: float = 0.0
) -> Forecast:
    """Return the forecast of a live migration.

    :param bandwidth: the limit for the migration
    :param link: the throughput of the network, if it is higher: QEMU obeys the
        bandwidth limit in rounds, not in the last copy or in post-copy
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
            # A rest below the next check's amount is sent at once.
            took, kept = took + kept / fastest, 0.0
        if late := now + took > timeout_s:
            took = max(0.0, timeout_s - now)
            kept = max(0.0, left - took * speed)
        # Pages written before their first transfer cost nothing extra.
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
    """Return the outcome of an action of :class:`Limits`, taken at the timeout.

    :param now: the time of the timeout
    :param paused_s: time to send the rest while the guest is paused
    :param copy_s: time to send the rest by post-copy
    """
    if action == "abort":
        return Forecast("aborted", now, throttle=throttle)
    if action == "post-copy":
        return Forecast("post-copy", now + copy_s, throttle=throttle)
    return Forecast("paused", now + paused_s, paused_s, throttle)
