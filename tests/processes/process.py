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
from tests.processes import ports
from tests.processes.errors import SandboxError
from tests.processes.layout import Layout

# In the environment of every process of a sandbox: whatever they start in turn
# is known by it.
MARK: Final = "NOVA_PERFVM_SANDBOX"

# Where the processes find the pretended hypervisor and drivers, and the entry point of
# Neutron's, which no other neutron-server is to see.
_IMPORTED: Final = (
    Path(__file__).parents[2],
    Path(__file__).with_name("plugins"),
)
_PAUSE_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process that was started.

    :ivar started: when, in the kernel's ticks since boot: another process that
        got the same pid later was started at another time
    :ivar port: the port that it listens on, if any
    """

    name: str
    pid: int
    started: int
    port: int | None = None

    @property
    def alive(self) -> bool:
        """Return whether it runs; a zombie does not."""
        return _started(self.pid) == self.started


class Processes:
    """The processes of one sandbox; each leads a session of its own."""

    def __init__(self, layout: Layout) -> None:
        """Know what earlier commands have started."""
        self._layout = layout

    def environment(self, changes: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a process of the sandbox.

        This process's variables without those of Python and of cloud clients; requests
        to the sandbox bypass proxies.
        """
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OS_", "PYTHON", "RABBITMQ_"))
        }
        kept |= ports.without_proxies(kept)
        own = {
            MARK: str(self._layout.directory),
            "PYTHONPATH": os.pathsep.join(map(str, _IMPORTED)),
        }
        return kept | own | dict(changes or {})

    def output(self, name: str) -> Path:
        """Return where a process's stdout and stderr go."""
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
        """Start a process.

        :raises SandboxError: when one of this name runs already
        """
        self.refuse_running(name)
        with self.output(name).open("ab") as output:
            child = subprocess.Popen(
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
        """Make sure that no process of a name runs.

        :raises SandboxError: when one does
        """
        found = self.find(name)
        if found is not None and found.alive:
            raise SandboxError(f"{name} runs already, pid {found.pid}")

    def adopt(self, name: str, pid: int, port: int | None = None) -> ProcessRecord:
        """Record a process that somebody else has started."""
        # 0 is no process's start: it has ended already.
        record = ProcessRecord(name, pid, _started(pid) or 0, port)
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # It appears whole: sandbox status may be looking.
        textfile.replace(str(path), json.dumps(asdict(record)), private=True)
        return record

    def all(self) -> list[ProcessRecord]:
        """Return all that were started and not stopped, dead ones, too."""
        names = [path.stem for path in self._layout.processes.glob("*.json")]
        return [record for record in map(self.find, sorted(names)) if record]

    def find(self, name: str) -> ProcessRecord | None:
        """Return the process of a name; None if none was started."""
        try:
            text = self._path(name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return ProcessRecord(**json.loads(text))

    def kill(self, name: str) -> None:
        """Kill a process and its children, as a crash would.

        :raises SandboxError: when it does not run
        """
        record = self.find(name)
        if record is None or not record.alive:
            raise SandboxError(f"{name} does not run")
        os.killpg(record.pid, signal.SIGKILL)
        _await_end([record], 30)

    def stop(self, names: Iterable[str], timeout_s: float = 20) -> list[str]:
        """End processes in order; return those that had to be killed."""
        records = [r for r in map(self.find, names) if r is not None]
        for record in records:
            if record.alive:
                # It may have ended since one looked.
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
        """Return the pids of all that the sandbox's processes have left behind."""
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
        """Kill those that have a text in their command line."""
        for pid in self.leftovers():
            with contextlib.suppress(OSError):
                if argument.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)

    def sweep(self, grace_s: float = 5) -> list[int]:
        """Kill what was left behind; return what took more than the grace."""
        end = time.monotonic() + grace_s
        while (pids := self.leftovers()) and time.monotonic() < end:
            time.sleep(_PAUSE_S)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        # Their ports are free only when they have ended.
        while any(map(_started, pids)):
            time.sleep(_PAUSE_S)
        return pids

    def _path(self, name: str) -> Path:
        return self._layout.processes / f"{name}.json"


def _await_end(
    records: Sequence[ProcessRecord], timeout_s: float
) -> list[ProcessRecord]:
    """Wait until processes have ended; return those that have not."""
    end = time.monotonic() + timeout_s
    while (left := [r for r in records if r.alive]) and time.monotonic() < end:
        time.sleep(_PAUSE_S)
    return left


def _started(pid: int) -> int | None:
    """Return when a process started, in ticks since boot; None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name in parentheses may have any character.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])
