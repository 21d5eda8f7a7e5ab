# SPDX-License-Identifier: Apache-2.0
"""The nova-compute processes, seen from outside."""

from __future__ import annotations

import datetime as dt
import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm.sandbox.processes import waiting
from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.hostspec import MEMORY_GB, PretendedHost
from nova_perfvm.sandbox.processes.layout import Layout
from nova_perfvm.sandbox.processes.process import Processes, ProcessRecord

FORK_SERVER: Final = "compute-fork-server"
PREFIX: Final = "nova-compute-"

_MODULE: Final = "nova_perfvm.sandbox.processes.hypervisor.forkserver"
_FORK_S: Final = 120
_REPORT_S_EACH: Final = 6


@dataclass
class Computes:
    """Asks the fork server for computes."""

    processes: Processes
    layout: Layout
    environment: Environment

    def start_fork_server(self) -> ProcessRecord:
        """Start the process that all computes are forked from."""
        self.layout.fork_server.unlink(missing_ok=True)
        return self.processes.start(
            FORK_SERVER,
            [
                self.environment.program("python"),
                *("-m", _MODULE, str(self.layout.fork_server)),
            ],
            # Threads' arenas of the C library would cost more than Nova itself.
            env={"MALLOC_ARENA_MAX": "2"},
        )

    def start(self, host: PretendedHost) -> ProcessRecord:
        """Start the nova-compute of a host.

        :raises SandboxError: when it runs already, or the fork server ended
        """
        name = PREFIX + host.name
        self.processes.refuse_running(name)
        self._await_fork_server()
        return self.processes.adopt(name, self._fork(name, host))

    def _await_fork_server(self) -> None:
        record = self.processes.find(FORK_SERVER)
        if record is None or not record.alive:
            record = self.start_fork_server()

        def ready() -> bool:
            waiting.check_alive(self.processes, record)
            return self.layout.fork_server.exists()

        waiting.until(ready, f"{FORK_SERVER} to import Nova", waiting.LIMIT_S)

    def _fork(self, name: str, host: PretendedHost) -> int:
        own = self.layout.host_etc(host.name)
        order = {
            "log": str(self.layout.logs / f"{name}.log"),
            "output": str(self.processes.output(name)),
            "config_files": [
                str(self.layout.etc / "nova" / "nova-compute.conf"),
                str(own / "nova.conf"),
                str(own / "sandbox.conf"),
            ],
            "hardware": {
                "hostname": host.name,
                "shape": str(host.shape),
                "memory_gb": MEMORY_GB,
                "domains": str(self.layout.domains(host.name)),
            },
        }
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(_FORK_S)
                client.connect(str(self.layout.fork_server))
                client.sendall(json.dumps(order).encode() + b"\n")
                with client.makefile() as answer:
                    return int(answer.readline())
        except (OSError, ValueError) as exc:
            raise SandboxError(
                f"{FORK_SERVER} does not start {name}: {exc}; see "
                f"{self.processes.output(FORK_SERVER)}"
            ) from exc


def await_reports(
    processes: Processes,
    connection: Any,
    hosts: Sequence[PretendedHost],
    since: dt.datetime,
) -> None:
    """Wait until each host's nova-compute has reported after a time.

    A service that has just been started is "up" for Nova as long as the last
    word of the one before is fresh.

    :param since: in UTC
    :raises SandboxError: when one has ended, or it takes too long
    """
    wanted = {host.name for host in hosts}

    def reported() -> bool:
        for name in wanted:
            record = processes.find(PREFIX + name)
            if record is not None:
                waiting.check_alive(processes, record)
        response = connection.compute.get("/os-services?binary=nova-compute")
        if response.status_code >= 400:
            return False
        return wanted <= {
            service["host"]
            for service in response.json()["services"]
            if service["state"] == "up"
            and service["updated_at"]
            and dt.datetime.fromisoformat(service["updated_at"]).replace(tzinfo=dt.UTC)
            > since
        }

    timeout_s = waiting.LIMIT_S + _REPORT_S_EACH * len(hosts)
    waiting.until(reported, f"{len(hosts)} computes to report", timeout_s)
