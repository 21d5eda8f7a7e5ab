# SPDX-License-Identifier: Apache-2.0
"""Start, await and remove nova-compute processes."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm.sandbox.processes import running, waiting
from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.hostspec import MEMORY_GB, PretendedHost
from nova_perfvm.sandbox.processes.layout import Layout
from nova_perfvm.sandbox.processes.process import Processes

PREFIX: Final = "nova-compute-"

_MODULE: Final = "nova_perfvm.sandbox.hypervisor.fork"
_REPORT_S_EACH: Final = 6


@dataclass
class Computes:
    """Starts nova-computes by :mod:`nova_perfvm.sandbox.hypervisor.fork`."""

    processes: Processes
    layout: Layout
    environment: Environment

    def start(self, hosts: Sequence[PretendedHost]) -> None:
        """Start the nova-computes of hosts.

        :raises SandboxError: when a compute runs already, or Nova cannot be imported
        """
        names = [PREFIX + host.name for host in hosts]
        for name in names:
            self.processes.refuse_running(name)
        orders = [self._order(*each) for each in zip(names, hosts, strict=True)]
        said = running.run(
            [self.environment.program("python"), "-m", _MODULE, json.dumps(orders)],
            # malloc's arenas of all threads would take more memory than Nova itself.
            env=self.processes.environment({"MALLOC_ARENA_MAX": "2"}),
        )
        # The pids are the last lines of its output.
        pids = said.splitlines()[-len(hosts) :]
        for name, pid in zip(names, pids, strict=True):
            self.processes.adopt(name, int(pid))

    def start_and_await(
        self, hosts: Sequence[PretendedHost], connect: Callable[[], Any]
    ) -> None:
        """Start the nova-computes of hosts, and wait until each has reported.

        :param connect: returns an SDK connection of the administrator
        :raises SandboxError: when a compute does not report
        """
        since = dt.datetime.now(dt.UTC)
        self.start(hosts)
        await_reports(self.processes, connect(), hosts, since)

    def remove(self, hosts: Sequence[PretendedHost]) -> None:
        """Stop the nova-computes of hosts, and remove their files.

        This includes computes that an interrupted start has not recorded.
        """
        self.processes.stop([PREFIX + host.name for host in hosts])
        for host in hosts:
            etc = self.layout.host_etc(host.name)
            # Computes without a record: their process shows the orders of the fork.
            self.processes.kill_leftovers(str(etc / "nova.conf"))
            for directory in (etc, self.layout.domains(host.name).parent):
                shutil.rmtree(directory, ignore_errors=True)

    def _order(self, name: str, host: PretendedHost) -> dict[str, Any]:
        own = self.layout.host_etc(host.name)
        return {
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


def await_reports(
    processes: Processes,
    connection: Any,
    hosts: Sequence[PretendedHost],
    since: dt.datetime,
) -> None:
    """Wait until each host's nova-compute has reported later than `since`.

    The state "up" is no evidence: after a restart Nova still sees the fresh report of
    the process before.

    :param since: time in UTC
    :raises SandboxError: when a compute has ended, or after the time limit
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


def forget(compute: Any, hosts: Sequence[PretendedHost]) -> None:
    """Delete hosts' compute services, and so their compute nodes and providers.

    :param compute: the SDK's compute proxy of the administrator
    :raises openstack.exceptions.SDKException: when Nova refuses
    """
    names = {host.name for host in hosts}
    for service in compute.services(binary="nova-compute"):
        if service.host in names:
            compute.delete_service(service)
