# SPDX-License-Identifier: Apache-2.0
"""Machines of a proof: waited for, and looked at while their VMs are busy."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError, PerfVMError
from nova_perfvm.measure.bench import connection, target_state
from nova_perfvm.measure.bench.connection import Output, TargetError
from nova_perfvm.measure.bench.run import NothingToRunError, Tell
from nova_perfvm.measure.bench.scenario import Scenario, Target, Tools
from nova_perfvm.measure.bench.tools.tool import OutputError, Place, Run

_POLL_S: Final = 5
_ASK_S: Final = 60
# From the start of the load to the first look, and between the two looks.
_SETTLE_S: Final = 5
_INTERVAL_S: Final = 10
# Longer than looking takes: the load is ended then.
LOAD_S: Final = 900
_NODES: Final = ("cat", "/sys/devices/system/node/has_cpu")
# It installs tools, and its last steps take CPUs.
_CLOUD_INIT: Final = (
    "sh",
    "-c",
    "! command -v cloud-init > /dev/null || cloud-init status --wait > /dev/null; true",
)

Document = dict[str, Any]


def nodes(host: Target) -> tuple[int, ...]:
    """Return the NUMA nodes of a host that have CPUs; none if it tells of none.

    :raises TargetError: when it does not answer
    """
    try:
        text = asyncio.run(connection.run(host, _NODES, _ASK_S))
        return tuple(sorted(cpuset.parse(text)))
    except TargetError as exc:
        if exc.stderr and "No such file" in exc.stderr:
            return ()
        raise TargetError(f"{host.ssh or host.name}: {exc.reason}", exc.stderr) from exc
    except CPUSetError:
        return ()


def await_ready(
    targets: Iterable[Target], scenario: Scenario, patience_s: float, tell: Tell
) -> None:
    """Wait until targets can be logged in to and have all tools.

    :raises NothingToRunError: with what is still missing after that time
    """
    asyncio.run(_await_all(list(targets), scenario, patience_s, tell))


async def _await_all(
    targets: list[Target], scenario: Scenario, patience_s: float, tell: Tell
) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        found = await asyncio.gather(
            *(_missing(target, scenario, deadline) for target in targets)
        )
        reasons = [reason for reason in found if reason]
        if not reasons:
            return
        tell("waiting for the machines", len(found) - len(reasons), len(found))
        if time.monotonic() >= deadline:
            lines = "\n".join(f"  {reason}" for reason in reasons)
            raise NothingToRunError(f"not all machines are ready:\n{lines}")
        await asyncio.sleep(min(_POLL_S, patience_s))


async def _missing(target: Target, scenario: Scenario, deadline: float) -> str:
    """Return why a target cannot measure yet; empty if it can."""
    try:
        left_s = max(_ASK_S, deadline - time.monotonic())
        await connection.run(target, _CLOUD_INIT, left_s)
        await target_state.look(target, scenario)
    except TargetError as exc:
        return f"{target.name} ({target.ssh or 'this machine'}): {exc}"
    return ""


def collect(
    host: Target,
    vms: tuple[Target, ...],
    tools: Tools,
    targets: Mapping[str, Target],
) -> tuple[Document, list[Document]]:
    """Return what host and VMs show while all VMs are busy.

    :param tools: the load
    :param targets: by name, those that serve it
    :raises TargetError: when the load fails, or is over before the second look
    :raises PerfVMError: when a machine cannot be collected
    """
    return asyncio.run(_collect(host, vms, tools, targets))


async def _collect(
    host: Target,
    vms: tuple[Target, ...],
    tools: Tools,
    targets: Mapping[str, Target],
) -> tuple[Document, list[Document]]:
    loads: dict[str, tuple[Run, asyncio.Task[Output]]] = {}
    async with contextlib.AsyncExitStack() as stack:
        try:
            for number, vm in enumerate(vms):
                for tool in tools.used().values():
                    for run in tool.runs(Place(vm.name, number)):
                        load = await _start(stack, vm, run, targets)
                        loads[f"{vm.name}: {run.name}"] = run, load
            await asyncio.sleep(_SETTLE_S)
            seen = await asyncio.gather(*(_seen(one) for one in (host, *vms)))
            for title, (run, load) in loads.items():
                if load.done():
                    why = f"no load while collecting: {_ended(run, load)}"
                    raise TargetError(f"{title}: {why}")
        finally:
            for _, load in loads.values():
                load.cancel()
            tasks = [load for _, load in loads.values()]
            await asyncio.gather(*tasks, return_exceptions=True)
    return seen[0], seen[1:]


async def _start(
    stack: contextlib.AsyncExitStack,
    vm: Target,
    run: Run,
    targets: Mapping[str, Target],
) -> asyncio.Task[Output]:
    """Start a load, and what serves it."""
    if run.server:
        serving = connection.serving(
            targets[run.server.target],
            *(run.server.command, run.server.ready, run.server.times),
            LOAD_S,
        )
        await stack.enter_async_context(serving)
    waiting = await stack.enter_async_context(
        connection.waiting(vm, run.command, LOAD_S)
    )
    await waiting.ready()
    return asyncio.create_task(waiting.start(0))


def _ended(run: Run, load: asyncio.Task[Output]) -> str:
    """Return why a load is over; iperf3 says in its output that it cannot connect."""
    try:
        run.parse(load.result().stdout)
    except (TargetError, OutputError) as exc:
        return str(exc)
    return "it is over"


async def _seen(target: Target) -> Document:
    try:
        return await target_state.collect(target, _INTERVAL_S)
    except PerfVMError as exc:
        raise TargetError(f"{target.name}: it cannot be collected: {exc}") from exc
