# SPDX-License-Identifier: Apache-2.0
"""Machines of a proof: waited for, and looked at while their VMs are busy."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from nova_perfvm import cpuset
from nova_perfvm.exceptions import CPUSetError, PerfVMError
from nova_perfvm.measure.bench import connection, medium, target_state
from nova_perfvm.measure.bench.connection import Output, TargetError
from nova_perfvm.measure.bench.run import NothingToRunError, Tell, Warn
from nova_perfvm.measure.bench.scenario import Scenario, Target, Tools
from nova_perfvm.measure.bench.tools import fio
from nova_perfvm.measure.bench.tools.tool import OutputError, Place, Run, ServerCommand
from nova_perfvm.measure.collect.collected import Collected
from nova_perfvm.measure.prove.plan import Machines

_POLL_S: Final = 5
_ASK_S: Final = 60
# From the start of the load to the first look, and between the two looks.
_SETTLE_S: Final = 5
_INTERVAL_S: Final = 10
# Longer than looking takes: the load is ended then.
LOAD_S: Final = 900
# Part of a VM's memory to hold in use: hypervisor.memory_whole wants 0.90.
_HELD: Final = 0.92
# A guest touches 1 GiB a second or more.
_HELD_WITHIN_S: Final = 300
# Fill as many MiB as the argument says, or the available memory less 512 MiB.
# sysbench is no help: it ends when its threads have not filled their memory after 30 s.
_HOLD: Final = """\
import sys, time
with open("/proc/meminfo") as lines:
    found = dict(line.split(":") for line in lines)
available_mb = int(found["MemAvailable"].split()[0]) // 1024
held = b"\\1" * (min(int(sys.argv[1]), available_mb - 512) << 20)
print("held", flush=True)
time.sleep(3600)
"""
_NODES: Final = ("cat", "/sys/devices/system/node/has_cpu")
# It installs tools, and its last steps take CPUs.
_CLOUD_INIT: Final = (
    "sh",
    "-c",
    "! command -v cloud-init > /dev/null || cloud-init status --wait > /dev/null; true",
)


def nodes(host: Target) -> tuple[int, ...]:
    """Return the NUMA nodes of a host that have CPUs; empty if the host lists no nodes.

    :raises TargetError: when the host does not answer
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


def check_media(
    targets: Iterable[Target],
    directory: str,
    volumes: Mapping[str, Collection[str]] | None = None,
) -> None:
    """Check that the medium of a directory can prove a promise of IOPS.

    :param volumes: {VM: IDs of its volumes of the class's type}; None for a class
        without volumes
    :raises NothingToRunError: with the media that prove nothing, and the remedy
    """
    of = {one.name: medium.look(one, directory) for one in targets}
    reasons = []
    for who, found in asyncio.run(connection.each(of)).items():
        if isinstance(found, TargetError):
            reasons.append(f"{who}: {found}")
        elif not found.direct:
            reason = f"{who}: direct I/O is not direct there, on {found.filesystem}"
            reasons.append(f"{reason}: name a directory on ext4 or XFS")
        elif volumes is not None and not any(
            found.volume and one.startswith(found.volume)
            for one in volumes.get(who, ())
        ):
            on = f"volume {found.volume}" if found.volume else "no volume of Cinder"
            reasons.append(
                f"{who}: it is on {on}, and the class is of volumes of a type: boot "
                "the server from such a volume, and name a directory on it"
            )
    if reasons:
        listed = "".join(f"\n  {reason}" for reason in reasons)
        raise NothingToRunError(f"--directory {directory}:{listed}")


def await_ready(
    targets: Iterable[Target], scenario: Scenario, patience_s: float, tell: Tell
) -> None:
    """Wait until targets can be logged in to and have all tools.

    :raises NothingToRunError: with what is missing after `patience_s` seconds
    """
    asyncio.run(_await_all(list(targets), scenario, patience_s, tell))


async def _await_all(
    targets: list[Target], scenario: Scenario, patience_s: float, tell: Tell
) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        found = await connection.together(
            _missing(target, scenario, deadline) for target in targets
        )
        reasons = [reason for reason in found if reason]
        if not reasons:
            return
        # What ssh says is in the second line.
        first = " ".join(reasons[0].split("\n")[:2])
        tell(f"waiting: {first}", len(found) - len(reasons), len(found))
        if time.monotonic() >= deadline:
            lines = "\n".join(f"  {reason}" for reason in reasons)
            raise NothingToRunError(f"not all machines are ready:\n{lines}")
        await asyncio.sleep(min(_POLL_S, patience_s))


async def _missing(target: Target, scenario: Scenario, deadline: float) -> str:
    """Wait for cloud-init; return why a target cannot measure, empty if it can."""
    try:
        left_s = max(_ASK_S, deadline - time.monotonic())
        await connection.run(target, _CLOUD_INIT, left_s)
        await target_state.look(target, scenario)
    except TargetError as exc:
        return f"{target.name} ({target.ssh or 'this machine'}): {exc}"
    return ""


def collect(
    machines: Machines, tools: Tools, memory_mb: int, warn: Warn
) -> tuple[Collected, tuple[Collected, ...]]:
    """Return what host and VMs show while all VMs are busy, with their memory in use.

    :param tools: tools that make the load
    :param memory_mb: memory of each VM in MiB
    :param warn: prints a warning about VMs whose memory is idle
    :raises TargetError: when the load fails, or ends before the second look
    :raises PerfVMError: when a machine cannot be collected
    """
    try:
        return asyncio.run(_collect(machines, tools, memory_mb, warn))
    except TargetError as exc:
        if not exc.lost:
            raise
        warn(f"{exc.reason}: once more")
    return asyncio.run(_collect(machines, tools, memory_mb, warn))


def remove_files(targets: Iterable[Target], directory: str) -> None:
    """Remove fio's files that proofs have left below a directory.

    :raises TargetError: when a file stays
    """

    async def remove() -> None:
        command = fio.removal_of_all(directory)
        await connection.together(
            connection.run(target, command, _ASK_S) for target in targets
        )

    asyncio.run(remove())


async def _collect(
    machines: Machines, tools: Tools, memory_mb: int, warn: Warn
) -> tuple[Collected, tuple[Collected, ...]]:
    loads: dict[str, tuple[Run, asyncio.Task[Output]]] = {}
    vms = machines.vms
    async with contextlib.AsyncExitStack() as stack:
        try:
            await connection.together(_hold(stack, vm, memory_mb, warn) for vm in vms)
            for number, vm in enumerate(vms):
                for tool in tools.used().values():
                    for run in tool.runs(Place(vm.name, number)):
                        load = await _start(stack, vm, run, machines.generator)
                        loads[f"{vm.name}: {run.name}"] = run, load
            await asyncio.sleep(_SETTLE_S)
            machines_seen = (_seen(one) for one in (machines.host, *vms))
            seen = await connection.together(machines_seen)
            for title, (run, load) in loads.items():
                if load.done():
                    why = f"no load while collecting: {_ended(run, load)}"
                    raise TargetError(f"{title}: {why}")
        finally:
            for _, load in loads.values():
                load.cancel()
            tasks = [load for _, load in loads.values()]
            await asyncio.gather(*tasks, return_exceptions=True)
    return seen[0], tuple(seen[1:])


async def _hold(
    stack: contextlib.AsyncExitStack, vm: Target, memory_mb: int, warn: Warn
) -> None:
    """Have the memory of a VM in use; warn if that fails."""
    command = ("python3", "-c", _HOLD, str(int(_HELD * memory_mb)))
    server = ServerCommand(vm.name, command, ready="held", times=1)
    holding = connection.serving(vm, server, LOAD_S, _HELD_WITHIN_S)
    try:
        await stack.enter_async_context(holding)
    except TargetError as exc:
        warn(f"{vm.name}: its memory is not in use while it is collected: {exc}")


async def _start(
    stack: contextlib.AsyncExitStack,
    vm: Target,
    run: Run,
    generator: Target | None,
) -> asyncio.Task[Output]:
    """Start a load and its server; return the task that awaits its output."""
    if run.server and generator:
        serving = connection.serving(generator, run.server, LOAD_S)
        await stack.enter_async_context(serving)
    waiting = await stack.enter_async_context(
        connection.waiting(vm, run.command, LOAD_S, run.most_bytes)
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


async def _seen(target: Target) -> Collected:
    try:
        return await target_state.collect(target, _INTERVAL_S)
    except PerfVMError as exc:
        raise TargetError(f"{target.name}: it cannot be collected: {exc}") from exc
