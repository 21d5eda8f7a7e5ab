# SPDX-License-Identifier: Apache-2.0
"""Commands on a target: here or through ssh, and started at an agreed time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.measure.bench.scenario import Target
from nova_perfvm.measure.bench.tools.tool import ServerCommand

_Key = TypeVar("_Key")
_NS: Final = 1_000_000_000
# A machine that is gone is missed within a minute.
_SSH: Final = (
    *("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15"),
    *("-o", "ServerAliveInterval=15"),
)
# What ssh ends with when it could not connect, or has lost the connection.
_LOST: Final = "exit code 255"
# Until a target answers at all.
_ANSWER_S: Final = 60
# What is written in this time after the limit may still arrive.
_LATE_S: Final = 30
_END_S: Final = 10
_MIB: Final = 1024 * 1024
# A target may be a guest that its tenant has changed: more would fill the memory here.
_LINE_BYTES: Final = 64 * 1024
_FEW_WORDS: Final = _MIB
_PINGS: Final = 9

_READY: Final = "perfvm-ready"
_START: Final = "perfvm-start"
# What follows: the CPUs that it might use, then minutes and seconds on them, of the
# shell and of the command, in user space and in the kernel.
_END: Final = "perfvm-end"
_TAIL: Final = re.compile(rf"\n{_END} (\S*)((?:\s+\d+m[\d.]+s){{4}})\s*\Z")
_MINUTES: Final = re.compile(r"(\d+)m([\d.]+)s")
_TAIL_BYTES: Final = 4096
# What times out, and what ends when nobody holds standard input any more: a run
# that was interrupted here does not go on there, beside the next one.
# Bash's times has the decimal comma of a locale, which ssh may take there.
_BARRIER: Final = f"""\
export LC_ALL=C
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
printf '\n%s %s ' {_END} "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' \
/proc/self/status)"
times
exit "$code"
"""
_TIMED_OUT: Final = 124
_CLOCK: Final = f"echo {_READY}; while read -r _; do date +%s%N; done"


class TargetError(PerfVMError):
    """A failed command on a target; ``stderr`` is its stderr, or the end of stdout."""

    def __init__(self, reason: str, stderr: str = "") -> None:
        """Keep what the command said."""
        self.reason = reason
        self.stderr = stderr
        super().__init__(f"{reason}\n{stderr}".strip())

    @property
    def lost(self) -> bool:
        """Whether ssh could not connect, or has lost the connection."""
        return _LOST in self.reason


@dataclass(frozen=True)
class Clock:
    """The difference of a target's clock from this machine's.

    :ivar offset_s: seconds by which the target's clock is ahead
    :ivar uncertainty_s: half of the shortest round trip of a query
    """

    offset_s: float = 0.0
    uncertainty_s: float = 0.0


class Used(NamedTuple):
    """The CPU use of a command.

    :ivar cpus: the CPUs allowed to the command, as the kernel lists them
    :ivar cpu_s: CPU seconds of all processes of the command
    """

    cpus: str
    cpu_s: float


class Output(NamedTuple):
    """The output of a command.

    :ivar started_s: start of the command, in seconds since 1970 of the target's clock
    :ivar used: CPU use; None where the target's shell does not report it
    """

    stdout: str
    started_s: float
    used: Used | None = None


def line(target: Target, command: Sequence[str], *, bound: bool = True) -> list[str]:
    """Return the command line here that runs a command on a target.

    :param bound: whether to bind the command to the target's NUMA node
    """
    words = [*target.prefix]
    if bound and target.node is not None:
        node = ",".join(map(str, (target.node, *target.more_nodes)))
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
    most_bytes: int = _FEW_WORDS,
) -> str:
    """Run a command on a target; return what it prints.

    :param bound: whether to bind the command to the target's NUMA node
    :param most_bytes: the longest output that the command may print
    :raises TargetError: when the command fails, takes longer or prints more
    """
    command_line = line(target, command, bound=bound)
    async with _process(command_line, most_bytes=most_bytes) as process:
        process.send(stdin)
        process.close()
        return await process.end(timeout_s)


async def run_watched(target: Target, command: Sequence[str], limit_s: int) -> None:
    """Run a command on a target, which ends there when nobody waits for it here.

    :raises TargetError: when the command fails, or takes longer
    """
    async with waiting(target, command, limit_s) as process:
        await process.ready()
        await process.start(0)


async def clock(target: Target) -> Clock:
    """Measure how far a target's clock is ahead of this machine's; 0 without ssh.

    :raises TargetError: when the target does not answer
    """
    if target.ssh is None:
        return Clock()
    found = []
    async with _process(line(target, ["sh", "-c", _CLOCK], bound=False)) as process:
        await process.ready()
        for _ in range(_PINGS):
            before = time.time()
            process.send(b"?\n")
            answer = await process.line()
            after = time.time()
            if not answer.isdecimal():
                raise TargetError(f"date +%s%N: expected a number, found {answer!r}")
            middle = (before + after) / 2
            found.append(Clock(int(answer) / _NS - middle, (after - before) / 2))
    return min(found, key=lambda one: one.uncertainty_s)


async def together(doing: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Run coroutines at once; return their results, or raise after all have ended.

    :raises TargetError: the first failure
    """
    found = list((await each(dict(enumerate(doing)))).values())
    for result in found:
        if isinstance(result, TargetError):
            raise result
    return found


async def each(doing: Mapping[_Key, Coroutine[Any, Any, Any]]) -> dict[_Key, Any]:
    """Run coroutines at once; return {key: result, or TargetError for a failure}."""
    # Without return_exceptions, gather ends with the first error, and on Ctrl-C with
    # the first coroutine that is cancelled: the event loop would close while processes
    # of the others still end.
    found = await asyncio.gather(*doing.values(), return_exceptions=True)
    for result in found:
        if isinstance(result, BaseException) and not isinstance(result, TargetError):
            raise result
    return dict(zip(doing, found, strict=True))


def failed(found: Mapping[str, Any]) -> dict[str, TargetError]:
    """Return {key: error} of the failures in a result of :func:`each`."""
    return {key: one for key, one in found.items() if isinstance(one, TargetError)}


class Command:
    """A command that runs on a target."""

    def __init__(self, process: Process, limit_s: int, most_bytes: int) -> None:
        """Keep the process, whose standard streams are pipes."""
        self.used: Used | None = None
        self.last = bytearray()
        self._process: Any = process
        self._limit_s = limit_s
        self._left_bytes = most_bytes

    @property
    def ended(self) -> bool:
        """Return whether the command has ended."""
        return self._process.returncode is not None

    def send(self, data: bytes) -> None:
        """Write to the command's standard input."""
        self._process.stdin.write(data)

    def close(self) -> None:
        """Close the command's standard input."""
        self._process.stdin.close()

    def drain(self) -> asyncio.Future[None]:
        """Read and drop the output of the program until the future is cancelled."""
        return asyncio.ensure_future(_drain(self._process, self.last))

    async def line(self, timeout_s: float = _ANSWER_S) -> str:
        """Return the next line that the program prints.

        :raises TargetError: when no line comes, or too much was printed
        """
        try:
            async with asyncio.timeout(timeout_s):
                found: bytes = await self._process.stdout.readline()
        except TimeoutError:
            raise TargetError(f"no answer for {timeout_s:g} s") from None
        except ValueError:
            raise TargetError(f"a line of more than {_LINE_BYTES} bytes") from None
        self._left_bytes -= len(found)
        if self._left_bytes < 0:
            raise TargetError("too many lines before what was expected")
        if found:
            return found.decode(errors="replace").strip()
        self.close()
        _, stderr, reason = await self._rest(timeout_s)
        raise TargetError(f"ended too early: {reason or 'exit code 0'}", stderr)

    async def ready(self) -> None:
        """Wait until the remote shell is ready for the start time.

        :raises TargetError: when the shell ends before
        """
        while await self.line() != _READY:
            # A greeting of the shell there.
            pass

    async def start(self, at_s: float) -> Output:
        """Start the command at a time of the target's clock; return its output.

        :raises TargetError: when the command fails, or takes longer than its limit
        """
        self.send(f"{round(at_s * _NS)}\n".encode())
        wait_s = max(0, at_s - time.time()) + self._limit_s + _LATE_S
        began = await self.line(wait_s)
        stdout = await self.end(wait_s)
        start, _, ns = began.partition(" ")
        if start != _START or not ns.isdecimal():
            raise TargetError(f"expected {_START}, found {began!r}")
        return Output(stdout, int(ns) / _NS, self.used)

    async def end(self, timeout_s: float) -> str:
        """Wait for the command's end; return its remaining standard output.

        :raises TargetError: when the command fails, or takes longer
        """
        stdout, stderr, reason = await self._rest(timeout_s)
        if reason:
            raise TargetError(reason, stderr or stdout[-2000:])
        return stdout

    async def _rest(self, timeout_s: float) -> tuple[str, str, str]:
        """Return the rest of stdout and stderr, and the reason of a failure, if any."""
        process = self._process
        limits = {process.stdout: self._left_bytes, process.stderr: _FEW_WORDS}
        reading = [asyncio.ensure_future(_all(*one)) for one in limits.items()]
        try:
            async with asyncio.timeout(timeout_s):
                outputs = await asyncio.gather(*reading)
                code = await process.wait()
        except TimeoutError:
            raise TargetError(f"no end after {timeout_s:.4g} s") from None
        finally:
            # A stream has one reader at a time, and _end() is the next.
            for one in reading:
                one.cancel()
            await asyncio.gather(*reading, return_exceptions=True)
        stdout, stderr = (data.decode(errors="replace") for data in outputs)
        stdout, self.used = _told(stdout)
        reason = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        if self._limit_s and code == _TIMED_OUT:
            reason = f"stopped after {self._limit_s} s: raise grace_s, or look why"
        return stdout, stderr, reason if code else ""


def _told(stdout: str) -> tuple[str, Used | None]:
    """Return a command's output, and the CPU use that its shell reports, if any."""
    if not (match := _TAIL.search(stdout)):
        return stdout, None
    parts = _MINUTES.findall(match[2])
    cpu_s = sum(60 * int(minutes) + float(s) for minutes, s in parts)
    return stdout[: match.start()], Used(match[1], cpu_s)


@contextlib.asynccontextmanager
async def waiting(
    target: Target, command: Sequence[str], limit_s: int, most_bytes: int = _FEW_WORDS
) -> AsyncIterator[Command]:
    """Have a command wait on a target, bound to its node; end it at last.

    :param most_bytes: the longest output that the command may print
    """
    barrier = ["sh", "-c", _BARRIER, "sh", str(limit_s), *command]
    async with _process(line(target, barrier), limit_s, most_bytes) as process:
        yield process


@contextlib.asynccontextmanager
async def serving(
    target: Target, server: ServerCommand, limit_s: int, patience_s: float = _ANSWER_S
) -> AsyncIterator[Command]:
    """Have a server run on a target, from when it is ready.

    :param patience_s: how long each line may take
    :raises TargetError: when the server ends before, or a line takes longer
    """
    async with waiting(target, server.command, limit_s) as process:
        process.send(b"0\n")
        seen = 0
        while seen < server.times:
            seen += server.ready in await process.line(patience_s)
        # Servers report as they go, and stand still when nobody reads that.
        draining = process.drain()
        try:
            yield process
        finally:
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)


@contextlib.asynccontextmanager
async def _process(
    command: Sequence[str], limit_s: int = 0, most_bytes: int = _FEW_WORDS
) -> AsyncIterator[Command]:
    try:
        # Ctrl-C is for this process; it ends the others.
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            limit=_LINE_BYTES,
        )
    except OSError as exc:
        raise TargetError(f"{command[0]}: {exc.strerror}") from None
    command_here = Command(process, limit_s, most_bytes)
    try:
        yield command_here
    finally:
        if process.stdin:
            process.stdin.close()
        ending = asyncio.ensure_future(_end(process, command_here.last))
        try:
            await asyncio.shield(ending)
            if found := _told(command_here.last.decode(errors="replace"))[1]:
                command_here.used = found
        except asyncio.CancelledError:
            # Ctrl-C just now; the process would be left to itself.
            await ending
            raise


async def _all(stream: asyncio.StreamReader, most_bytes: int) -> bytes:
    """Return the rest of a stream.

    :raises TargetError: when the stream has more than `most_bytes`
    """
    pieces, length = [], 0
    while piece := await stream.read(1 << 16):
        length += len(piece)
        if length > most_bytes:
            raise TargetError(f"more than {most_bytes / _MIB:.3g} MiB of output")
        pieces.append(piece)
    return b"".join(pieces)


async def _drain(process: Any, last: bytearray) -> None:
    """Read and drop the output of a process, which waits until somebody reads it.

    :param last: takes the end of the standard output
    """

    async def drop(stream: asyncio.StreamReader, last: bytearray) -> None:
        while piece := await stream.read(1 << 16):
            last += piece
            del last[:-_TAIL_BYTES]

    await asyncio.gather(drop(process.stdout, last), drop(process.stderr, bytearray()))


async def _end(process: Process, last: bytearray) -> None:
    """Wait for the end of a process that was asked to end, then kill what is left."""
    if process.returncode is None:
        try:
            async with asyncio.timeout(_END_S):
                await asyncio.gather(_drain(process, last), process.wait())
        except TimeoutError:
            _kill_session(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        # asyncio reports its end only when its pipes are empty.
        async with asyncio.timeout(_END_S):
            await _drain(process, last)
    await process.wait()


def _kill_session(leader: int) -> None:
    """Kill all processes of a session: ``timeout`` has a process group of its own."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        # A process that has ended meanwhile cannot be read or killed.
        with contextlib.suppress(OSError):
            # The name in parentheses may have any character; then come state,
            # parent, process group and session.
            stat = path.read_text(encoding="utf-8", errors="replace")
            session = stat.rpartition(")")[2].split()[3]
            if int(session) == leader:
                os.kill(int(path.parent.name), signal.SIGKILL)
