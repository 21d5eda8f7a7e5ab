# SPDX-License-Identifier: Apache-2.0
"""Carry a scenario out: look at the targets, then measure step by step."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from asyncio.subprocess import Process
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.bench import busy_vms, connection, target_state
from nova_perfvm.measure.bench.connection import Clock, Output, TargetError
from nova_perfvm.measure.bench.record import Record
from nova_perfvm.measure.bench.scenario import LEAST_REPEATS, Scenario, Step, Target
from nova_perfvm.measure.bench.target_state import Look
from nova_perfvm.measure.bench.tools import memory
from nova_perfvm.measure.bench.tools.tool import OutputError, meaning
from nova_perfvm.measure.samples import Machine, Measurement

# From when all are ready to the start: what the message there takes.
_AHEAD_S: Final = 0.5
# Of starts that are further apart something is wrong.
_FAR_APART_S: Final = 0.5
# What a step takes beside the tool's time, until it is known.
_OVERHEAD_S: Final = 2.0
_REMOVE_S: Final = 60

# What is done, how many steps are, of how many.
Tell = Callable[[str, int, int], None]
Warn = Callable[[str], None]


class NothingToRunError(PerfVMError):
    """Targets on which the scenario cannot run; all reasons in one message."""


class RunOutcome(NamedTuple):
    """How a run ended."""

    steps: int
    failures: list[dict[str, Any]]


def run(scenario: Scenario, record: Record, tell: Tell, warn: Warn) -> RunOutcome:
    """Carry out what is not done yet.

    The record is written after each step: after Ctrl-C, what is there is whole.

    :raises NothingToRunError: when targets do not answer, or lack tools
    """
    return asyncio.run(_run(scenario, record, tell, warn))


async def _run(
    scenario: Scenario, record: Record, tell: Tell, warn: Warn
) -> RunOutcome:
    steps = list(scenario.steps(record.seed))
    if all(step.key in record.done for step in steps):
        return RunOutcome(len(steps), record.failures)
    if scenario.repeats < LEAST_REPEATS:
        warn(f"fewer than {LEAST_REPEATS} repeats: bench compare can tell no interval")
    tell("looking at the targets", 0, 0)
    looks = await _looks(scenario)
    for who, look in looks.items():
        if look.not_collected:
            warn(f"{who}: its state is not recorded: {look.not_collected}")
    if scenario.needs_working_set and not record.working_set_mb:
        record.working_set_mb = scenario.working_set_mb or _working_set_mb(looks)
    record.session(_now(), {who: look.as_document() for who, look in looks.items()})
    record.save()
    await _prepare(scenario, record, tell)
    left = [
        step
        for step in scenario.steps(record.seed, record.working_set_mb)
        if step.key not in record.done
    ]
    overheads: list[float] = []
    for number, step in enumerate(left):
        remaining = _remaining(left[number:], overheads)
        tell(
            f"{step.title}; {remaining} left",
            len(steps) - len(left) + number + 1,
            len(steps),
        )
        before = time.monotonic()
        await _step(step, scenario, looks, record, warn)
        overheads.append(time.monotonic() - before - step.run.seconds)
        record.save()
    if not record.failures:
        await _remove(scenario, warn)
    return RunOutcome(len(steps), record.failures)


async def _looks(scenario: Scenario) -> dict[str, Look]:
    """Look at all targets at once.

    :raises NothingToRunError: with all that is missing on any of them
    """
    targets = scenario.targets
    found = await asyncio.gather(
        *(target_state.look(target, scenario) for target in targets),
        return_exceptions=True,
    )
    looks: dict[str, Look] = {}
    reasons = []
    for target, result in zip(targets, found, strict=True):
        if isinstance(result, TargetError):
            reasons.append(f"{target.name}: {result}")
        elif isinstance(result, BaseException):
            raise result
        elif result.missing:
            reasons += [f"{target.name}: {reason}" for reason in result.missing]
        else:
            looks[target.name] = result
    if reasons:
        lines = "\n".join(f"  {reason}" for reason in reasons)
        raise NothingToRunError(f"the scenario cannot run on all targets:\n{lines}")
    return looks


def _working_set_mb(looks: Mapping[str, Look]) -> int:
    """Return what holds for all targets: a guest may show a cache of another size.

    :raises NothingToRunError: when no target tells the size of its caches
    """
    most = max(look.last_level_cache_bytes for look in looks.values())
    if not most:
        raise NothingToRunError(
            "lscpu tells the last-level cache of no target: set working_set_mb in the "
            f"scenario, to {memory.TIMES_LAST_LEVEL} times that of the host or more"
        )
    return math.ceil(memory.TIMES_LAST_LEVEL * most / 2**20)


async def _prepare(scenario: Scenario, record: Record, tell: Tell) -> None:
    """Write the files that fio works on, so that no run has to begin with that."""
    fio = scenario.tools.fio
    if fio is None:
        return
    tell("writing fio's files", 0, 0)
    targets = _measuring(scenario)
    await asyncio.gather(
        *(
            _tried(
                connection.run(
                    target,
                    fio.preparation(scenario.place(target.name)),
                    scenario.prepare_s,
                ),
                record,
                target.name,
            )
            for target in targets
        )
    )


async def _tried(doing: Coroutine[Any, Any, str], record: Record, who: str) -> None:
    try:
        await doing
    except TargetError as exc:
        record.fail("fio's files", who, exc.reason, exc.stderr)


async def _remove(scenario: Scenario, warn: Warn) -> None:
    fio = scenario.tools.fio
    if fio is None:
        return
    for target in _measuring(scenario):
        try:
            command = fio.removal(scenario.place(target.name))
            await connection.run(target, command, _REMOVE_S)
        except TargetError as exc:
            warn(f"{target.name}: fio's files are not removed: {exc}")


def _measuring(scenario: Scenario) -> list[Target]:
    busy = {who for group in scenario.groups.values() for who in group}
    return [target for target in scenario.targets if target.name in busy]


async def _step(
    step: Step,
    scenario: Scenario,
    looks: Mapping[str, Look],
    record: Record,
    warn: Warn,
) -> None:
    """Run a step; record its figures, or what failed."""
    limit_s = step.run.seconds + scenario.grace_s
    async with contextlib.AsyncExitStack() as stack:
        try:
            await _serve(step, scenario, stack, limit_s)
        except TargetError as exc:
            who = step.run.server.target if step.run.server else step.group
            record.fail(step.key, who, exc.reason, exc.stderr)
            warn(f"{step.title}: {who}: {exc}")
            return
        targets = [scenario.target(who) for who in step.runs]
        before, began_s = await busy_vms.look(targets), time.monotonic()
        outputs = await _at_once(step, scenario, looks, stack, limit_s)
        took_s = time.monotonic() - began_s
        after, ahead_s = await busy_vms.look(targets), await _ahead_s(targets)
    noted = busy_vms.between(before, after)
    for who in [who for who, one in noted.items() if one is None]:
        warn(f"{step.title}: {who}: what VMs did beside it is not known")
    measured: list[Measurement] = []
    failed = []
    for who, output in outputs.items():
        try:
            if isinstance(output, TargetError):
                raise output
            measured += _measurements(step, who, output, scenario, looks[who])
        except TargetError as exc:
            failed.append(who)
            record.fail(step.key, who, exc.reason, exc.stderr)
        except OutputError as exc:
            failed.append(who)
            record.fail(step.key, who, str(exc))
    if failed:
        for failure in record.failures[-len(failed) :]:
            words = f"{failure['reason']}\n{failure['stderr']}".strip()
            warn(f"{step.title}: {failure['who']}: {words}")
        # The others were not as many at once as their figures would say.
        return
    starts = {
        who: output.started_s - looks[who].clock.offset_s
        for who, output in outputs.items()
        if isinstance(output, Output)
    }
    apart = max(starts.values()) - min(starts.values())
    if apart > _FAR_APART_S:
        warn(f"{step.title}: the targets started {apart:.2f} s apart")
    record.step(
        step,
        measured if step.round > 0 else (),
        {
            "started_at": _iso(min(starts.values())),
            "started_apart_s": round(apart, 6),
            "took_s": round(took_s, 3),
            "ahead_s": ahead_s,
            "beside": noted,
        },
    )


async def _ahead_s(targets: Collection[Target]) -> dict[str, float | None]:
    """Return how far each target's clock is ahead now; None where nobody can tell."""
    found = await asyncio.gather(
        *map(connection.clock, targets), return_exceptions=True
    )
    return {
        target.name: round(one.offset_s, 6) if isinstance(one, Clock) else None
        for target, one in zip(targets, found, strict=True)
    }


async def _serve(
    step: Step, scenario: Scenario, stack: contextlib.AsyncExitStack, limit_s: int
) -> None:
    for run in step.runs.values():
        server = run.server
        if server is not None:
            await stack.enter_async_context(
                connection.serving(
                    scenario.target(server.target),
                    *(server.command, server.ready, server.times),
                    limit_s + scenario.grace_s,
                )
            )


async def _at_once(
    step: Step,
    scenario: Scenario,
    looks: Mapping[str, Look],
    stack: contextlib.AsyncExitStack,
    limit_s: int,
) -> dict[str, Output | TargetError]:
    """Start a step's runs at the same time, as soon as all of them wait for it."""
    found: dict[str, Output | TargetError] = {}
    loads: dict[str, Process] = {}
    load = memory.load(step.working_set_mb)
    for who in step.loaded:
        busy = connection.serving(
            *(scenario.target(who), load, memory.LOADED, 1), 2 * limit_s
        )
        try:
            loads[who] = await stack.enter_async_context(busy)
        except TargetError as exc:
            found[who] = exc
    waiting: dict[str, connection.Waiting] = {}
    for who, run in step.runs.items():
        try:
            waiting[who] = await stack.enter_async_context(
                connection.waiting(scenario.target(who), run.command, limit_s)
            )
        except TargetError as exc:
            found[who] = exc
    ready = await _all_of({who: one.ready() for who, one in waiting.items()})
    found |= {who: e for who, e in ready.items() if isinstance(e, TargetError)}
    if found:
        # No figure of this step would be kept.
        return found
    at_s = time.time() + _AHEAD_S
    outputs = await _all_of(
        {
            who: one.start(at_s + looks[who].clock.offset_s)
            for who, one in waiting.items()
        }
    )
    return outputs | {
        who: TargetError("it was to be busy until the end, and ended before")
        for who, process in loads.items()
        if process.returncode is not None
    }


async def _all_of(doing: Mapping[str, Coroutine[Any, Any, Any]]) -> dict[str, Any]:
    found = await asyncio.gather(*doing.values(), return_exceptions=True)
    for result in found:
        if isinstance(result, BaseException) and not isinstance(result, TargetError):
            raise result
    return dict(zip(doing, found, strict=True))


def _measurements(
    step: Step, who: str, output: Output, scenario: Scenario, look: Look
) -> list[Measurement]:
    run = step.runs[who]
    target = scenario.target(who)
    machine = Machine(
        target.kind, look.kernel, look.cpu_model, look.governor, target.node
    )
    found = []
    for metric, value in run.parse(output.stdout).items():
        if not value > 0:
            raise OutputError(f"{metric} is {value:g}: nothing was done")
        unit, better = meaning(metric)
        found.append(
            Measurement(
                who=who,
                machine=machine,
                tool=run.tool,
                tool_version=look.versions[run.tool],
                metric=metric,
                unit=unit,
                better=better,
                threads=run.threads,
                value=value,
                round=step.round,
                at_once=len(step.runs),
                loaded_neighbours=len(step.neighbours),
            )
        )
    return found


def planned_s(steps: Iterable[Step], overhead_s: float = _OVERHEAD_S) -> float:
    """Return how many seconds steps take.

    :param overhead_s: what each takes beside the tool's time
    """
    return sum(step.run.seconds + overhead_s for step in steps)


def _remaining(left: list[Step], overheads: list[float]) -> str:
    """Say how long steps take, each as much longer as the others were so far."""
    overhead = sum(overheads) / len(overheads) if overheads else _OVERHEAD_S
    seconds = planned_s(left, overhead)
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _now() -> str:
    return _iso(time.time())


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
