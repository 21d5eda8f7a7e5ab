# SPDX-License-Identifier: Apache-2.0
"""Wait until a condition holds, or fail with the last state that was seen."""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.processes.errors import SandboxError
from tests.processes.ports import ADDRESS
from tests.processes.process import Processes, ProcessRecord

_TAIL: Final = 12

# On a starved machine everything takes its time; a process that ends is noticed
# at once, so this is for one that hangs.
LIMIT_S: Final = 600

# A proxy that is set knows nothing of this machine's ports.
_DIRECTLY: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def until(
    look: Callable[[], Any], what: str, timeout_s: float, pause_s: float = 0.2
) -> Any:
    """Look until there is something to see, and return that.

    :param what: for the message: ``port 21005 to open``
    :raises SandboxError: when there is nothing in that time
    """
    end = time.monotonic() + timeout_s
    while not (seen := look()):
        if time.monotonic() > end:
            raise SandboxError(f"waited {timeout_s:.0f} s in vain for {what}")
        time.sleep(pause_s)
    return seen


def until_ready(
    processes: Processes, record: ProcessRecord, ready: Callable[[], bool]
) -> None:
    """Wait until a process does what it was started for.

    :param ready: tells whether it does
    :raises SandboxError: when it ends, or does not in that time
    """

    def looked() -> bool:
        check_alive(processes, record)
        return ready()

    until(looked, f"{record.name} to be ready on port {record.port}", LIMIT_S)


def check_alive(processes: Processes, record: ProcessRecord) -> None:
    """Make sure that a process runs.

    :raises SandboxError: with the end of its output when it does not
    """
    if not record.alive:
        path = processes.output(record.name)
        raise SandboxError(f"{record.name} ended; the end of {path}:\n{tail(path)}")


def tail(path: Path) -> str:
    """Return the last lines of a file."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-_TAIL:])


def listens(port: int) -> bool:
    """Tell whether a port of this machine takes connections."""
    try:
        socket.create_connection((ADDRESS, port), 1).close()
    except OSError:
        return False
    return True


def answers(url: str) -> bool:
    """Tell whether an API answers, whatever it says; uwsgi listens long before."""
    try:
        _DIRECTLY.open(url, timeout=60).close()
    except urllib.error.HTTPError as answer:
        answer.close()
    except OSError:
        return False
    return True
