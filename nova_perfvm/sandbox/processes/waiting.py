# SPDX-License-Identifier: Apache-2.0
"""Wait until a condition holds, or fail after a time or at a process's end."""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.ports import ADDRESS
from nova_perfvm.sandbox.processes.process import Processes, ProcessRecord

_TAIL: Final = 12

# Long enough for an overloaded machine.  A process that ends is noticed at once, so
# only a hanging process takes this time.
LIMIT_S: Final = 600

# Without proxies, which cannot reach this machine's ports.
_DIRECTLY: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def until(
    look: Callable[[], Any], what: str, timeout_s: float, pause_s: float = 0.2
) -> Any:
    """Call `look` until it returns a true value, and return the value.

    :param what: the awaited event, for the message: ``port 21005 to open``
    :raises SandboxError: after `timeout_s` seconds
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
    """Wait until a process is ready.

    :param ready: returns whether the process is ready
    :raises SandboxError: when the process ends, or after LIMIT_S seconds
    """

    def looked() -> bool:
        check_alive(processes, record)
        return ready()

    until(looked, f"{record.name} to be ready on port {record.port}", LIMIT_S)


def check_alive(processes: Processes, record: ProcessRecord) -> None:
    """Check that a process runs.

    :raises SandboxError: when the process has ended; has the end of its output
    """
    if not record.alive:
        path = processes.output(record.name)
        raise SandboxError(f"{record.name} ended; the end of {path}:\n{tail(path)}")


def tail(path: Path) -> str:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-_TAIL:])


def listens(port: int) -> bool:
    try:
        socket.create_connection((ADDRESS, port), 1).close()
    except OSError:
        return False
    return True


def answers(url: str) -> bool:
    """Return whether an API answers with any status.

    A listening port is no evidence: uwsgi listens long before the API answers.
    """
    try:
        _DIRECTLY.open(url, timeout=60).close()
    except urllib.error.HTTPError as answer:
        answer.close()
    except OSError:
        return False
    return True
