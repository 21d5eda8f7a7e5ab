# SPDX-License-Identifier: Apache-2.0
"""Carry a scenario out: look at the targets, then measure step by step."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.bench import busy_vms, connection, target_state
from nova_perfvm.measure.bench.connection import Command, Output, TargetError, Used
from nova_perfvm.measure.bench.record import Record
from nova_perfvm.measure.bench.scenario import LEAST_REPEATS, Scenario, Step, Target
from nova_perfvm.measure.bench.target_state import Look
from nova_perfvm.measure.bench.tools import memory
from nova_perfvm.measure.bench.tools.tool import OutputError, Place, measurements
from nova_perfvm.measure.samples import Machine, Measurement

# From when all are ready to the start: what the message there takes.
_AHEAD_S: Final = 0.5
# Starts further apart than this are reported.
_FAR_APART_S: Final = 0.5
# Until a step whose connection was lost is tried again.
_AGAIN_S: Final = 5
_REMOVE_S: Final = 60
# What a step takes beside the tool's time, until it is known.
_OVERHEAD_S: Final = 2.0

# Called with (description, steps done, all steps).
Tell = Callable[[str, int, int], None]
Warn = Callable[[str], None]


class NothingToRunError(PerfVMError):
    """Targets on which the scenario cannot run; all reasons in one message."""


def run(scenario: Scenario, record: Record, tell: Tell, warn: Warn) -> int:
    """Carry out what is not done yet; what failed is in the record.

    The record is written after each step, so Ctrl-C leaves a whole record.

    :returns: the number of all steps
    :raises NothingToRunError: when targets do not answer, or lack tools
    """
    steps = list(scenario.steps(record.run["seed"]))
    if any(step.key not in record.done for step in steps):
        asyncio.run(_run(scenario, record, tell, warn))
    return len(steps)


async def _run(scenario: Scenario, record: Record, tell: Tell, warn: Warn) -> None:
    if scenario.repeats < LEAST_REPEATS:
        warn(f"fewer than {LEAST_REPEATS} repeats: bench compare can tell no interval")
    tell("looking at the targets", 0, 0)
    looks = await _looks(scenario)
    for who, look in looks.items():
        if look.not_collected:
            warn(f"{who}: its state is not recorded: {look.not_collected}")
    if scenario.needs_working_set and not record.run["working_set_mb"]:
        size_mb = scenario.working_set_mb or _working_set_mb(looks, warn)
        record.run["working_set_mb"] = size_mb
    started_at = _iso(time.time())
    record.session(started_at, {who: asdict(look) for who, look in looks.items()})
    record.save()
    try:
        await _prepare(scenario, record, tell)
        await _steps(scenario, record, looks, tell, warn)
    finally:
        await _remove(scenario, warn)


async def _prepare(scenario: Scenario, record: Record, tell: Tell) -> None:
    """Write fio's files before the first run."""
    if fio := scenario.tools.fio:
        tell("writing fio's files", 0, 0)
        do = partial(connection.run_watched, limit_s=scenario.prepare_s)
        for who, exc in (await _failed(scenario, do, fio.preparation)).items():
            record.fail("fio's files", who, exc.reason, exc.stderr)


async def _remove(scenario: Scenario, warn: Warn) -> None:
    """Remove fio's files, however the run has ended: they take gigabytes."""
    if fio := scenario.tools.fio:
        do = partial(connection.run, timeout_s=_REMOVE_S)
        for who, exc in (await _failed(scenario, do, fio.removal)).items():
            warn(f"{who}: fio's files are not removed: {exc}")


async def _failed(
    scenario: Scenario,
    do: Callable[[Target, Sequence[str]], Coroutine[Any, Any, Any]],
    command: Callable[[Place], Sequence[str]],
) -> dict[str, TargetError]:
    """Do a command on each target that measures; return what failed, by target."""
    measuring = sorted({who for group in scenario.groups.values() for who in group})
    done = {
        who: do(scenario.target(who), command(scenario.place(who))) for who in measuring
    }
    return connection.failed(await connection.each(done))


async def _steps(
    scenario: Scenario,
    record: Record,
    looks: Mapping[str, Look],
    tell: Tell,
    warn: Warn,
) -> None:
    """Carry out the steps that are not done."""
    steps = list(scenario.steps(record.run["seed"], record.run["working_set_mb"]))
    left = [step for step in steps if step.key not in record.done]
    overheads: list[float] = []
    for number, step in enumerate(left):
        words = f"{step.title}; {_remaining(left[number:], overheads)} left"
        tell(words, len(steps) - len(left) + number + 1, len(steps))
        before = time.monotonic()
        await _RunningStep(step, scenario, looks).record(record, warn)
        overheads.append(time.monotonic() - before - step.run.seconds)
        record.save()


async def _looks(scenario: Scenario) -> dict[str, Look]:
    """Look at all targets at once.

    :raises NothingToRunError: with what is missing on any of them
    """
    looks = await connection.each(
        {one.name: target_state.look(one, scenario) for one in scenario.targets}
    )
    if failed := connection.failed(looks):
        reasons = "".join(f"\n  {who}: {exc}" for who, exc in failed.items())
        raise NothingToRunError(f"the scenario cannot run on all targets:{reasons}")
    return looks


def _working_set_mb(looks: Mapping[str, Look], warn: Warn) -> int:
    """Return the working set for all targets: a guest may show a cache of another size.

    At most half of the least memory of a target, which has to run programs, too.

    :raises NothingToRunError: when no target tells the size of its caches
    """
    most = max(look.last_level_cache_bytes for look in looks.values())
    if not most:
        raise NothingToRunError(
            "lscpu tells the last-level cache of no target: set working_set_mb in the "
            f"scenario, to {memory.TIMES_LAST_LEVEL} times that of the host or more"
        )
    wanted_mb = math.ceil(memory.TIMES_LAST_LEVEL * most / 2**20)
    told = [
        (n.memory_bytes // 2**21, who) for who, n in looks.items() if n.memory_bytes
    ]
    half_mb, who = min(told, default=(wanted_mb, ""))
    if half_mb >= wanted_mb:
        return wanted_mb
    warn(
        f"memory is measured on {half_mb} MiB, half of what {who} has: caches hold a "
        f"part of it ({wanted_mb} MiB would be {memory.TIMES_LAST_LEVEL} times the "
        "last level)"
    )
    return half_mb


class _RunningStep(NamedTuple):
    """A step that is carried out."""

    step: Step
    scenario: Scenario
    looks: Mapping[str, Look]

    async def record(self, record: Record, warn: Warn) -> None:
        """Run the step; record its figures, or what failed."""
        step = self.step
        outputs, how = await self._carried_out()
        lost = [who for who, one in connection.failed(outputs).items() if one.lost]
        if lost:
            warn(f"{step.title}: {', '.join(lost)}: no connection; once more")
            await asyncio.sleep(_AGAIN_S)
            outputs, how = await self._carried_out()
        for who in [who for who, one in how["beside"].items() if one is None]:
            warn(f"{step.title}: {who}: what VMs did beside it is not known")
        measured: list[Measurement] = []
        starts = {}
        for who, output in outputs.items():
            try:
                if isinstance(output, TargetError):
                    raise output
                measured += self._measurements(who, output)
                starts[who] = output.started_s - self.looks[who].clock.offset_s
            except (TargetError, OutputError) as exc:
                reason = getattr(exc, "reason", str(exc))
                record.fail(step.key, who, reason, getattr(exc, "stderr", ""))
                warn(f"{step.title}: {who}: {exc}")
        if len(starts) < len(outputs):
            # Fewer targets ran at once than the other figures would say.
            return
        apart_s = max(starts.values()) - min(starts.values())
        if apart_s > _FAR_APART_S:
            warn(f"{step.title}: the targets started {apart_s:.2f} s apart")
        begun = {
            "started_at": _iso(min(starts.values())),
            "started_apart_s": round(apart_s, 6),
        }
        record.step(step, measured if step.round > 0 else (), begun | how)

    async def _carried_out(
        self,
    ) -> tuple[Mapping[str, Output | TargetError], dict[str, Any]]:
        """Run the step; return {target: output or error}, and keys for its record."""
        targets = [self.scenario.target(who) for who in self.step.runs]
        serving: list[tuple[str, Command]] = []
        before, began_s = await busy_vms.look(targets), time.monotonic()
        async with contextlib.AsyncExitStack() as stack:
            outputs = await self._at_once(stack, serving)
            took_s = time.monotonic() - began_s
        # What keeps a target busy has ended, too.
        used = [(who, getattr(one, "used", None)) for who, one in outputs.items()]
        used += [(who, command.used) for who, command in serving]
        after = await busy_vms.look(targets)
        own = {who: self._own(who, used) for who in before}
        clocks = {one.name: connection.clock(one) for one in targets}
        ahead = await connection.each(clocks)
        return outputs, {
            "took_s": round(took_s, 3),
            # None where nobody can tell.
            "ahead_s": {
                who: None if isinstance(one, TargetError) else round(one.offset_s, 6)
                for who, one in ahead.items()
            },
            "beside": busy_vms.between(before, after, own),
            "affinity": {who: one.cpus for who, one in used if one and who in outputs},
        }

    def _own(
        self, who: str, used: list[tuple[str, Used | None]]
    ) -> busy_vms.Own | None:
        """Return what the benchmark did on a target's machine; None if not known."""
        name = self.looks[who].hostname
        here = [other for other, look in self.looks.items() if look.hostname == name]
        found = [one for other, one in used if other in here]
        threads = sum(self.step.runs[w].threads for w in here if w in self.step.runs)
        if None in found:
            return None
        return busy_vms.Own([one for one in found if one], threads)

    async def _at_once(
        self, stack: contextlib.AsyncExitStack, serving: list[tuple[str, Command]]
    ) -> Mapping[str, Output | TargetError]:
        """Start the runs at the same time, once all targets are ready.

        :param serving: takes (target, command) of each server and each load
        :returns: {target: output or error}; only the errors if a run, server or load
            cannot be started, as no figure of the step would be kept
        """
        step, target = self.step, self.scenario.target
        limit_s = step.run.seconds + self.scenario.grace_s
        servers = [run.server for run in step.runs.values() if run.server]
        loads = [memory.load(who, step.working_set_mb) for who in step.loaded]
        waiting: dict[str, Command] = {}
        who = step.group
        try:
            for one in (*servers, *loads):
                who = one.target
                started = connection.serving(target(who), one, 2 * limit_s)
                serving.append((who, await stack.enter_async_context(started)))
            for who, run in step.runs.items():
                command = connection.waiting(
                    *(target(who), run.command, limit_s, run.most_bytes)
                )
                waiting[who] = await stack.enter_async_context(command)
        except TargetError as exc:
            return {who: exc}
        ready = {who: one.ready() for who, one in waiting.items()}
        if failed := connection.failed(await connection.each(ready)):
            return failed
        at_s = time.time() + _AHEAD_S
        starts = {
            who: one.start(at_s + self.looks[who].clock.offset_s)
            for who, one in waiting.items()
        }
        outputs = await connection.each(starts)
        busy = zip(loads, serving[len(servers) :], strict=True)
        early = TargetError("it was to be busy until the end, and ended before")
        return outputs | {load.target: early for load, (_, one) in busy if one.ended}

    def _measurements(self, who: str, output: Output) -> list[Measurement]:
        run, look = self.step.runs[who], self.looks[who]
        target = self.scenario.target(who)
        machine = Machine(
            target.kind, look.kernel, look.cpu_model, look.governor, target.node
        )
        return measurements(
            run.parse(output.stdout),
            who=who,
            machine=machine,
            tool=run.tool,
            tool_version=look.versions[run.tool],
            threads=run.threads,
            round=self.step.round,
            at_once=len(self.step.runs),
        )


def planned_s(steps: Iterable[Step], overhead_s: float = _OVERHEAD_S) -> float:
    """Return how many seconds steps take.

    :param overhead_s: seconds that each step takes beside the tool's time
    """
    return sum(step.run.seconds + overhead_s for step in steps)


def _remaining(left: list[Step], overheads: list[float]) -> str:
    """Return the time of steps in words, each with the mean of `overheads`, seconds."""
    overhead = sum(overheads) / len(overheads) if overheads else _OVERHEAD_S
    seconds = planned_s(left, overhead)
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
