# SPDX-License-Identifier: Apache-2.0
"""Processes that outlive the command that started them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from nova_perfvm.documents import textfile
from nova_perfvm.sandbox.processes import ports
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.layout import Layout

# Environment variable of a sandbox's processes.  Child processes inherit the variable,
# by which leftovers() finds them.
MARK: Final = "NOVA_PERFVM_SANDBOX"

_PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A started process.

    :ivar started: start time in the kernel's ticks since boot, which tells the process
        from a later one with the same pid
    :ivar port: the port on which the process listens; None for none
    """

    name: str
    pid: int
    started: int
    port: int | None = None

    @property
    def alive(self) -> bool:
        """Return whether the process runs; a zombie does not."""
        return _started(self.pid) == self.started


class Processes:
    """The processes of a sandbox; each leads its own session."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def environment(self, changes: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment for a process: this one's without clients' variables.

        Requests to the sandbox bypass proxies.

        :param changes: variables to add
        """
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OS_", "PYTHON", "RABBITMQ_"))
        }
        kept |= ports.without_proxies(kept)
        return kept | {MARK: str(self._layout.directory)} | dict(changes or {})

    def output(self, name: str) -> Path:
        return self._layout.logs / f"{name}.out"

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        port: int | None = None,
    ) -> ProcessRecord:
        """Start a process, and record it.

        :raises SandboxError: when a process of this name runs already
        """
        self.refuse_running(name)
        with self.output(name).open("ab") as output:
            child = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environment(env),
                cwd=cwd,
                start_new_session=True,
            )
        return self.adopt(name, child.pid, port)

    def refuse_running(self, name: str) -> None:
        """Refuse a name whose process runs.

        :raises SandboxError: when a process of this name runs
        """
        found = self.find(name)
        if found is not None and found.alive:
            raise SandboxError(f"{name} runs already, pid {found.pid}")

    def adopt(self, name: str, pid: int, port: int | None = None) -> ProcessRecord:
        """Record a process that was started elsewhere, such as by ``fork``."""
        # A process that has ended already gets start time 0, which no process has.
        record = ProcessRecord(name, pid, _started(pid) or 0, port)
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written atomically: sandbox status may read it at any time.
        textfile.replace(str(path), json.dumps(asdict(record)), private=True)
        return record

    def all(self) -> list[ProcessRecord]:
        """Return all recorded processes: started and not stopped, but maybe dead."""
        names = [path.stem for path in self._layout.processes.glob("*.json")]
        return [record for record in map(self.find, sorted(names)) if record]

    def find(self, name: str) -> ProcessRecord | None:
        """Return the recorded process of a name; None without a record."""
        try:
            text = self._path(name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return ProcessRecord(**json.loads(text))

    def kill(self, name: str) -> None:
        """Kill a process and its children, to simulate a crash.

        :raises SandboxError: when the process does not run
        """
        record = self.find(name)
        if record is None or not record.alive:
            raise SandboxError(f"{name} does not run")
        os.killpg(record.pid, signal.SIGKILL)
        _await_end([record], 30)

    def stop(self, names: Iterable[str], timeout_s: float = 20) -> list[str]:
        """Terminate processes in order; return the names of those that were killed.

        :param timeout_s: time to end before a kill
        """
        records = [r for r in map(self.find, names) if r is not None]
        for record in records:
            if record.alive:
                # The process may have ended since record.alive.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(record.pid, signal.SIGTERM)
        stubborn = _await_end(records, timeout_s)
        for record in stubborn:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(record.pid, signal.SIGKILL)
        _await_end(stubborn, 10)
        for record in records:
            self._path(record.name).unlink(missing_ok=True)
        return [record.name for record in stubborn]

    def leftovers(self) -> list[int]:
        """Return the pids of all living processes with the sandbox's mark."""
        mark = f"{MARK}={self._layout.directory}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal() or int(entry.name) == os.getpid():
                continue
            try:
                marked = mark in (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if marked and _started(int(entry.name)) is not None:
                found.append(int(entry.name))
        return sorted(found)

    def kill_leftovers(self, argument: str) -> None:
        """Kill the sandbox's processes that have a text in their command line."""
        for pid in self.leftovers():
            with contextlib.suppress(OSError):
                if argument.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)

    def sweep(self, grace_s: float = 5) -> list[int]:
        """Wait for processes left behind, and kill the others.

        :param grace_s: time to end before the kill
        :returns: the pids that were killed
        """
        end = time.monotonic() + grace_s
        while (pids := self.leftovers()) and time.monotonic() < end:
            time.sleep(_PAUSE_S)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # The ports of the killed processes are free only after their end.
        while any(map(_started, pids)):
            time.sleep(_PAUSE_S)
        return pids

    def _path(self, name: str) -> Path:
        return self._layout.processes / f"{name}.json"


def _await_end(
    records: Sequence[ProcessRecord], timeout_s: float
) -> list[ProcessRecord]:
    """Wait until processes have ended; return those still running after the time."""
    end = time.monotonic() + timeout_s
    while (left := [r for r in records if r.alive]) and time.monotonic() < end:
        time.sleep(_PAUSE_S)
    return left


def _started(pid: int) -> int | None:
    """Return a process's start in ticks since boot; None if the process has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The process's name, in parentheses, may contain blanks and parentheses.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])
