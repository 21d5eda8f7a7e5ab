# SPDX-License-Identifier: Apache-2.0
"""Commands on a target: here or through ssh, and started at an agreed time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.bench.scenario import Target

_NS: Final = 1_000_000_000
_SSH: Final = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15")
# Until a target answers at all.
_ANSWER_S: Final = 60
# What is written in this time after the limit may still arrive.
_LATE_S: Final = 30
_END_S: Final = 10
_MOST_BYTES: Final = 64 * 1024 * 1024
_PINGS: Final = 9

_READY: Final = "perfvm-ready"
_START: Final = "perfvm-start"
# What times out, and what ends when nobody holds standard input any more: a run
# that was interrupted here does not go on there, beside the next one.
_BARRIER: Final = f"""\
exec 3<&0
echo {_READY}
read -r at || exit 125
left=$((at - $(date +%s%N)))
if [ "$left" -gt 0 ]; then
  sleep "$((left / {_NS})).$(printf %09d "$((left % {_NS}))")"
fi
echo "{_START} $(date +%s%N)"
limit=$1
shift
timeout -k 5 "$limit" "$@" < /dev/null 3<&- &
pid=$!
{{ cat <&3; kill "$pid"; }} > /dev/null 2>&1 &
watch=$!
wait "$pid"
code=$?
kill "$watch" 2> /dev/null
exit "$code"
"""
_TIMED_OUT: Final = 124
_CLOCK: Final = f"echo {_READY}; while read -r _; do date +%s%N; done"


class TargetError(PerfVMError):
    """A command on a target that failed; ``stderr`` is what it said."""

    def __init__(self, reason: str, stderr: str = "") -> None:
        """Keep what the command said."""
        self.reason = reason
        self.stderr = stderr
        super().__init__(f"{reason}\n{stderr}".strip())


class Clock(NamedTuple):
    """How a target's clock differs from the one here.

    :ivar offset_s: seconds that it is ahead
    :ivar uncertainty_s: half of the shortest time that a question took
    """

    offset_s: float = 0.0
    uncertainty_s: float = 0.0


class Output(NamedTuple):
    """What a command left.

    :ivar started_s: when it was started, in seconds since 1970 of the clock there
    """

    stdout: str
    stderr: str
    started_s: float


def line(target: Target, command: Sequence[str], *, bound: bool = True) -> list[str]:
    """Return the command line here that runs a command on a target.

    :param bound: whether to bind it to the target's NUMA node
    """
    words = [*target.prefix]
    if bound and target.node is not None:
        node = target.node
        words += ["numactl", f"--cpunodebind={node}", f"--membind={node}"]
    words += command
    if target.ssh is None:
        return words
    # ssh joins its arguments with blanks, for a shell to take apart.
    return [*_SSH, *target.ssh_options, "--", target.ssh, shlex.join(words)]


async def run(
    target: Target,
    command: Sequence[str],
    timeout_s: float,
    stdin: bytes = b"",
    *,
    bound: bool = False,
) -> str:
    """Run a command on a target; return what it prints.

    :param bound: whether to bind it to the target's NUMA node
    :raises TargetError: when it fails, or takes longer
    """
    async with _process(line(target, command, bound=bound)) as process:
        try:
            async with asyncio.timeout(timeout_s):
                _send(process, stdin)
                _close(process)
                stdout, stderr = await _outputs(process)
                code = await process.wait()
        except TimeoutError:
            raise TargetError(f"no end after {timeout_s:g} s") from None
    if code:
        raise TargetError(_exit_words(code), stderr)
    return stdout


async def clock(target: Target) -> Clock:
    """Measure how a target's clock differs from the one here.

    :raises TargetError: when it does not answer
    """
    if target.ssh is None:
        return Clock()
    found = []
    async with _process(line(target, ["sh", "-c", _CLOCK], bound=False)) as process:
        await _until_ready(process)
        for _ in range(_PINGS):
            before = time.time()
            _send(process, b"?\n")
            answer = await _line(process)
            after = time.time()
            if not answer.isdecimal():
                raise TargetError(f"date +%s%N: expected a number, found {answer!r}")
            took = after - before
            found.append(
                Clock(int(answer) / _NS - (before + after) / 2, uncertainty_s=took / 2)
            )
    return min(found, key=lambda one: one.uncertainty_s)


class Waiting:
    """A command on a target that waits for its start."""

    def __init__(self, process: Process, limit_s: int) -> None:
        """Keep the process."""
        self._process = process
        self._limit_s = limit_s

    async def ready(self) -> None:
        """Wait until the command is there and waits.

        :raises TargetError: when it ends before
        """
        await _until_ready(self._process)

    async def start(self, at_s: float) -> Output:
        """Start it at a time of the clock there; return what it leaves.

        :raises TargetError: when it fails, or takes longer than its limit
        """
        process = self._process
        _send(process, f"{round(at_s * _NS)}\n".encode())
        wait_s = max(0, at_s - time.time()) + self._limit_s + _LATE_S
        try:
            async with asyncio.timeout(wait_s):
                started = (await _line(process, wait_s)).partition(" ")
                stdout, stderr = await _outputs(process)
                code = await process.wait()
        except TimeoutError:
            raise TargetError(f"no end after {wait_s:.0f} s") from None
        if code == _TIMED_OUT:
            reason = f"stopped after {self._limit_s} s: raise grace_s, or look why"
            raise TargetError(reason, stderr)
        if code:
            raise TargetError(_exit_words(code), stderr or _end_of(stdout))
        if started[0] != _START or not started[2].isdecimal():
            raise TargetError(f"expected {_START}, found {' '.join(started)!r}")
        return Output(stdout, stderr, int(started[2]) / _NS)


@contextlib.asynccontextmanager
async def waiting(
    target: Target, command: Sequence[str], limit_s: int
) -> AsyncIterator[Waiting]:
    """Have a command wait on a target, bound to its node; end it at last."""
    barrier = ["sh", "-c", _BARRIER, "sh", str(limit_s), *command]
    async with _process(line(target, barrier)) as process:
        yield Waiting(process, limit_s)


@contextlib.asynccontextmanager
async def serving(
    target: Target, command: Sequence[str], ready: str, times: int, limit_s: int
) -> AsyncIterator[Process]:
    """Have a server run on a target, from when it is ready.

    :param ready: what it prints when it is
    :param times: how often
    :raises TargetError: when it ends before
    """
    barrier = ["sh", "-c", _BARRIER, "sh", str(limit_s), *command]
    async with _process(line(target, barrier)) as process:
        _send(process, b"0\n")
        seen = 0
        while seen < times:
            seen += ready in await _line(process)
        yield process


@contextlib.asynccontextmanager
async def _process(command: Sequence[str]) -> AsyncIterator[Process]:
    try:
        # Ctrl-C is for this process; it ends the others.
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            limit=_MOST_BYTES,
        )
    except OSError as exc:
        raise TargetError(f"{command[0]}: {exc.strerror}") from None
    try:
        yield process
    finally:
        ending = asyncio.ensure_future(_end(process))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            # Ctrl-C just now; the process would be left to itself.
            await ending
            raise


async def _end(process: Process) -> None:
    """End a process and what it has started: ask, then force."""
    _close(process)
    if process.returncode is None:
        try:
            async with asyncio.timeout(_END_S):
                await asyncio.gather(_outputs(process), process.wait())
        except TimeoutError:
            _kill_session(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _kill_session(leader: int) -> None:
    """Kill all processes of a session: ``timeout`` has a process group of its own."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        # One that has ended meanwhile has no file, or no process.
        with contextlib.suppress(OSError):
            # The name in parentheses may have any character; then come state,
            # parent, process group and session.
            stat = path.read_text(encoding="utf-8", errors="replace")
            session = stat.rpartition(")")[2].split()[3]
            if int(session) == leader:
                os.kill(int(path.parent.name), signal.SIGKILL)


async def _until_ready(process: Process) -> None:
    while await _line(process) != _READY:
        # A greeting of the shell there.
        pass


def _send(process: Process, data: bytes) -> None:
    if process.stdin is not None:
        process.stdin.write(data)


def _close(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()


async def _line(process: Process, timeout_s: float = _ANSWER_S) -> str:
    """Return the next line of standard output.

    :raises TargetError: when there is none
    """
    if process.stdout is None:
        return ""
    try:
        async with asyncio.timeout(timeout_s):
            found = await process.stdout.readline()
            if found:
                return found.decode(errors="replace").strip()
            _close(process)
            _, stderr = await _outputs(process)
            code = await process.wait()
    except TimeoutError:
        raise TargetError(f"no answer for {timeout_s:g} s") from None
    raise TargetError(f"ended too early: {_exit_words(code)}", stderr)


async def _outputs(process: Process) -> tuple[str, str]:
    """Return all that is still printed to standard output and error."""
    streams = [stream for stream in (process.stdout, process.stderr) if stream]
    stdout, stderr = await asyncio.gather(*map(_all, streams))
    return stdout, stderr


async def _all(stream: asyncio.StreamReader) -> str:
    pieces, length = [], 0
    while piece := await stream.read(1 << 16):
        length += len(piece)
        if length > _MOST_BYTES:
            raise TargetError(f"more than {_MOST_BYTES // 2**20} MiB of output")
        pieces.append(piece)
    return b"".join(pieces).decode(errors="replace")


def _exit_words(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _end_of(text: str) -> str:
    return text[-2000:]
