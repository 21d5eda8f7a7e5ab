# SPDX-License-Identifier: Apache-2.0
"""The notes that a benchmark run records beside the figures."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from nova_perfvm.measure.bench.busy_vms import Beside, of_hosts
from nova_perfvm.measure.bench.medium import Medium
from nova_perfvm.measure.collect.collected import Kind
from nova_perfvm.measure.samples import Samples


class MachineSeen(NamedTuple):
    """What bench run saw of a machine when it began, or went on.

    :ivar name: its name in the samples
    :ivar files: {path: content} of the machine; empty if the collection failed
    """

    name: str
    kind: Kind
    hostname: str
    at: datetime
    files: Mapping[str, str]


class ClockSeen(NamedTuple):
    """How far the clock of a machine was ahead of bench run's at one time."""

    who: str
    at: datetime
    ahead_s: float


class StepNotes(NamedTuple):
    """One step: machines that measure at once.

    :ivar counts: whether the figures count; those of warm-up do not
    :ivar took_s: duration in seconds; None if unknown
    :ivar apart_s: seconds between the first start and the last
    """

    key: str
    counts: bool
    targets: tuple[str, ...]
    begun: datetime
    took_s: float | None
    apart_s: float | None

    @property
    def ended(self) -> datetime:
        """The end of the step; its start if the duration is unknown."""
        return self.begun + timedelta(seconds=self.took_s or 0)

    @property
    def round(self) -> str:
        """The number of the round, as text."""
        return self.key.partition("/")[0]


class RunNotes(NamedTuple):
    """What bench run noted beside its measurements.

    :ivar seen: each measured machine, once for each start or resumption of the run
    :ivar begun: start of the first session; ``ended``: end of the last step
    :ivar failures: measurements that failed
    :ivar beside: {host: the work of its VMs during the measurements}
    :ivar media: {target: medium of fio's directory}
    """

    seen: tuple[MachineSeen, ...]
    begun: datetime
    ended: datetime
    failures: tuple[str, ...]
    beside: Mapping[str, Beside]
    clocks: tuple[ClockSeen, ...]
    steps: tuple[StepNotes, ...]
    media: Mapping[str, Medium]

    @property
    def targets(self) -> tuple[MachineSeen, ...]:
        """The measured machines, as they were seen last."""
        return tuple({one.name: one for one in self.seen}.values())

    def idle_s(self, steps: Collection[StepNotes]) -> float | None:
        """Return how long nothing was measured from the first of steps to the last.

        None if a step's duration was not recorded, or without steps.
        """
        took = [one.took_s for one in steps if one.took_s is not None]
        if len(took) < len(steps) or not took:
            return None
        ended = max(one.ended for one in steps)
        whole = ended - min(one.begun for one in steps)
        return max(whole.total_seconds() - sum(took), 0.0)


def of_samples(found: Samples) -> RunNotes:
    """Return the notes of a benchmark run, without machines that only served.

    Call within :func:`reading_run`: another program may have written the notes.
    """
    run, measured = found.run, {m.who for m in found.measurements}
    kinds = {who: one["kind"] for who, one in run["scenario"]["targets"].items()}
    seen, clocks, media = [], [], {}
    for session in run["sessions"]:
        at = _time(session)
        for who, look in session["targets"].items():
            if "clock" in look:
                clocks.append(ClockSeen(who, at, float(look["clock"]["offset_s"])))
            if look.get("medium"):
                media[who] = Medium(**look["medium"])
            if who in measured:
                hostname, files = str(look["hostname"]), files_of(look)
                seen.append(MachineSeen(who, kinds[who], hostname, at, files))
    steps = []
    for step in run["steps"]:
        steps.append(_step(step))
        ahead_s = step.get("ahead_s") or {}
        clocks += [
            ClockSeen(who, steps[-1].ended, float(s))
            for who, s in ahead_s.items()
            if s is not None
        ]
    times = [_time(part) for part in (*run["sessions"], *run["steps"])]
    return RunNotes(
        seen=tuple(seen),
        begun=min(times),
        ended=max([*times, *(step.ended for step in steps)]),
        failures=tuple(
            f"{one['where']}: {one['who']}: {one['reason']}" for one in run["failures"]
        ),
        beside=of_hosts(run),
        clocks=tuple(clocks),
        steps=tuple(steps),
        media=media,
    )


def files_of(look: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the files of a machine that was looked at; none if not collected."""
    found: Mapping[str, str] = (look.get("collected") or {}).get("files", {})
    return found


def _step(step: Mapping[str, Any]) -> StepNotes:
    took_s, apart_s = step.get("took_s"), step.get("started_apart_s")
    return StepNotes(
        key=str(step["key"]),
        counts=not step.get("warm_up"),
        targets=tuple(step["targets"]),
        begun=_time(step),
        took_s=None if took_s is None else float(took_s),
        apart_s=None if apart_s is None else float(apart_s),
    )


def _time(part: Mapping[str, Any]) -> datetime:
    found = datetime.fromisoformat(part["started_at"])
    if found.tzinfo is None:
        raise ValueError("when it was started is not in UTC")
    return found
