# SPDX-License-Identifier: Apache-2.0
"""Forecast the live migrations of a plan from Nova's options and measured rates.

Guests are assumed to write to all their memory: no source tells their working set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from nova_perfvm.changes.migrations.forecast import Forecast, Limits, Writing, forecast
from nova_perfvm.changes.migrations.model import Move
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.placement.settings import is_false, is_true

# MiB per second: the throughput of a network of 10 Gbit/s, and the assumed dirty rate
# of a guest without a measurement.
USUAL_LINK, ASSUMED_RATE = 1100.0, 100.0
# Nova counts at least 2 GiB of memory for its timeouts.
_LEAST_GIB: Final = 2
# Nova refuses to start with smaller values, or with another action.
_LEAST: Final = {"downtime": 100, "downtime_steps": 3, "downtime_delay": 3}
_ACTIONS: Final = ("abort", "force_complete")


@dataclass(frozen=True)
class LiveMigrationOptions:
    """``[libvirt]live_migration_*``, with Nova's defaults and units."""

    bandwidth: int = 0
    downtime: int = 500
    downtime_steps: int = 10
    downtime_delay: int = 75
    completion_timeout: int = 800
    timeout_action: str = "abort"
    permit_auto_converge: bool = False
    permit_post_copy: bool = False

    @classmethod
    def of(cls, settings: Mapping[tuple[str, str], str]) -> LiveMigrationOptions:
        """Return the options from a nova.conf's {(section, option): value}.

        :raises PerfVMError: with every value that Nova refuses
        """
        found: dict[str, Any] = {}
        mistakes = []
        for one in fields(cls):
            option, default = f"live_migration_{one.name}", one.default
            text = settings.get(("libvirt", option), str(default))
            if isinstance(default, bool):
                found[one.name] = is_true(text)
                wanted = "" if found[one.name] or is_false(text) else "true or false"
            elif isinstance(default, str):
                found[one.name] = text
                wanted = "" if text in _ACTIONS else " or ".join(_ACTIONS)
            else:
                least = _LEAST.get(one.name, 0)
                found[one.name] = int(text) if text.isdecimal() else -1
                number = f"a whole number, {least} or more"
                wanted = "" if found[one.name] >= least else number
            if wanted:
                mistakes.append(f"[libvirt]{option} = {text}: expected {wanted}")
        if mistakes:
            raise PerfVMError("\n".join(mistakes))
        return cls(**found)

    def limits(self, memory_mb: int) -> Limits:
        """Return the limits of a server's live migration.

        As in ``downtime_steps()`` and ``_live_migration_monitor()`` of Nova 34.
        """
        gib, steps = max(_LEAST_GIB, memory_mb / 1024), self.downtime_steps
        first_ms = self.downtime / steps
        more_ms = (self.downtime - first_ms) / steps
        step_s = int(self.downtime_delay * gib)
        forced = "post-copy" if self.permit_post_copy else "pause"
        return Limits(
            downtimes=tuple(
                (step * step_s, int(first_ms + more_ms * step) / 1000)
                for step in range(steps + 1)
            ),
            timeout_s=int(self.completion_timeout * gib),
            action=forced if self.timeout_action == "force_complete" else "abort",
            # If post-copy is permitted, Nova does not use auto-converge.
            auto_converge=self.permit_auto_converge and not self.permit_post_copy,
        )


@dataclass(frozen=True)
class Estimates:
    """The known and assumed figures for migrations; rates in MiB per second.

    :ivar options_of: the file with Nova's options; empty for Nova's defaults
    :ivar link: the throughput of the network between hosts
    :ivar dirty_rate: of servers without a measurement
    :ivar measured: {ID of a server: (its dirty rate, seconds of measuring)}
    """

    options: LiveMigrationOptions = LiveMigrationOptions()
    options_of: str = ""
    link: float = USUAL_LINK
    dirty_rate: float = ASSUMED_RATE
    measured: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def bandwidth(self) -> float:
        """The bandwidth that a migration may use."""
        return min(self.link, self.options.bandwidth or self.link)

    def of(self, move: Move) -> Forecast | None:
        """Return the forecast of a live migration; None for a cold one."""
        if not move.live:
            return None
        memory = float(move.memory_mb)
        rate, period_s = self.measured.get(move.server, (self.dirty_rate, 1.0))
        guest = Writing.measured(memory, rate, period_s, memory)
        limits = self.options.limits(move.memory_mb)
        return forecast(guest, self.bandwidth, limits, self.link)

    def moved(self, move: Move) -> bool:
        """Return whether the server will be on its target after a migration."""
        found = self.of(move)
        return found is None or found.moved

    def assumptions(self, moves: Sequence[Move]) -> Iterator[str]:
        """Yield what the forecasts assume, and how many moves do not converge."""
        live = {move.server for move in moves if move.live}
        if not live:
            return
        limited = self.bandwidth < self.link
        option = "live_migration_bandwidth" if limited else "--bandwidth"
        words = (
            f"forecast of live migrations, one at a time: {self.bandwidth:g} MiB/s "
            f"({option}), [libvirt]live_migration_* of "
            f"{self.options_of or 'Nova by default (--compute-conf)'}"
        )
        if guessed := len(live - set(self.measured)):
            words += (
                f"; servers not measured: {guessed} of {len(live)}, assumed "
                f"to write {self.dirty_rate:g} MiB/s (--collected, --dirty-rate)"
            )
        yield words
        stuck = {move.server for move in moves if not self.moved(move)}
        if stuck:
            yield f"{len(stuck)} of {len(live)} live migrations do not converge"
