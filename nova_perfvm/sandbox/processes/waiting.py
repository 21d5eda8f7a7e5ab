# SPDX-License-Identifier: Apache-2.0
"""Wait until a condition holds, or fail with the last state that was seen."""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.ports import ADDRESS
from nova_perfvm.sandbox.processes.process import Processes, ProcessRecord

_PAUSE_S: Final = 0.2
_TAIL: Final = 12

# On a starved machine everything takes its time; a process that ends is noticed
# at once, so this is for one that hangs.
LIMIT_S: Final = 600

# A proxy that is set knows nothing of this machine's ports.
_DIRECTLY: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def until(condition: Callable[[], bool], what: str, timeout_s: float) -> None:
    """Wait until a condition holds.

    :param what: for the message: ``port 21005 to open``
    :raises SandboxError: when it does not in that time
    """
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise SandboxError(f"waited {timeout_s:.0f} s in vain for {what}")
        time.sleep(_PAUSE_S)


def until_listening(processes: Processes, record: ProcessRecord) -> None:
    """Wait until a process listens on its port.

    :raises SandboxError: when it ends, or does not in that time
    """

    def listening() -> bool:
        check_alive(processes, record)
        return record.port is not None and _connects(record.port)

    until(listening, f"{record.name} to listen on port {record.port}", LIMIT_S)


def until_answering(processes: Processes, record: ProcessRecord, url: str) -> None:
    """Wait until an API answers; uwsgi listens long before.

    :raises SandboxError: when its process ends, or does not in that time
    """

    def answering() -> bool:
        check_alive(processes, record)
        try:
            _DIRECTLY.open(url, timeout=60).close()
        except urllib.error.HTTPError as answer:
            answer.close()
            if answer.code >= 500:
                raise SandboxError(
                    f"{record.name} answers {url} with {answer.code}: see "
                    f"{processes.output(record.name).parent}"
                ) from None
        except OSError:
            return False
        return True

    until(answering, f"{record.name} to answer {url}", LIMIT_S)


def check_alive(processes: Processes, record: ProcessRecord) -> None:
    """Make sure that a process runs.

    :raises SandboxError: with the end of its output when it does not
    """
    processes.reap()
    if not record.alive:
        path = processes.output(record.name)
        raise SandboxError(f"{record.name} ended; the end of {path}:\n{tail(path)}")


def tail(path: Path) -> str:
    """Return the last lines of a file."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "  (no such file)"
    return "\n".join(f"  {line}" for line in lines[-_TAIL:]) or "  (empty)"


def _connects(port: int) -> bool:
    try:
        socket.create_connection((ADDRESS, port), 1).close()
    except OSError:
        return False
    return True
