# SPDX-License-Identifier: Apache-2.0
"""Start any one process of a sandbox by its name, and wait until it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nova_perfvm.sandbox.processes import (
    mariadb,
    memcached,
    rabbitmq,
    services,
    waiting,
)
from nova_perfvm.sandbox.processes.computes import FORK_SERVER, PREFIX, Computes
from nova_perfvm.sandbox.processes.errors import SandboxError

if TYPE_CHECKING:
    from nova_perfvm.sandbox.processes.environment import Environment
    from nova_perfvm.sandbox.processes.hostspec import PretendedHost
    from nova_perfvm.sandbox.processes.layout import Layout
    from nova_perfvm.sandbox.processes.process import Processes
    from nova_perfvm.sandbox.processes.programs import Programs
    from nova_perfvm.sandbox.processes.settings import SandboxSettings

INFRASTRUCTURE: Final = ("mariadb", "rabbitmq", "memcached")
APIS: Final = ("keystone", "placement", "glance", "neutron", "nova-api")


class Starter:
    """What starts processes; their configuration files exist already."""

    def __init__(
        self,
        layout: Layout,
        settings: SandboxSettings,
        environment: Environment,
        programs: Programs,
        processes: Processes,
    ) -> None:
        """Start nothing yet."""
        self._layout = layout
        self.settings = settings
        self._environment = environment
        self._programs = programs
        self._processes = processes
        self.computes = Computes(processes, layout, environment)

    @property
    def hosts(self) -> tuple[PretendedHost, ...]:
        """The pretended compute hosts."""
        return self.settings.pretended

    def start(self, name: str) -> None:
        """Start a process; an API or a server is then ready.

        :raises SandboxError: when there is none of that name, it runs already,
            or it does not come up
        """
        arguments = (self._processes, self._programs)
        if name == "mariadb":
            mariadb.start(*arguments, self._layout, self.settings)
        elif name in {"rabbitmq", "epmd"}:
            rabbitmq.start(*arguments, self._layout, self.settings)
        elif name == "memcached":
            memcached.start(*arguments, self.settings)
        elif name in APIS:
            self.launch(name)
            self.await_api(name)
        else:
            self.launch(name)

    def launch(self, name: str) -> None:
        """Start an OpenStack process, and do not wait for it."""
        if name == FORK_SERVER:
            self.computes.start_fork_server()
        elif name.startswith(PREFIX):
            self._start_compute(name)
        else:
            service = self._service(name)
            self._processes.start(
                service.name, service.command, env=service.env, port=service.port
            )

    def await_api(self, name: str) -> None:
        """Wait until an API answers."""
        record = self._processes.find(name)
        if record is None:
            raise SandboxError(f"{name} was not started")
        url = self.settings.url(name, "/")
        waiting.until_answering(self._processes, record, url)

    def _service(self, name: str) -> services.SandboxService:
        if name in APIS:
            return services.api(name, self._layout, self.settings, self._environment)
        if name == services.CONDUCTOR:
            return services.conductor(self._layout, self._environment)
        kind, _, number = name.rpartition("-")
        path = self._layout.etc / "nova" / f"{name}.conf"
        if kind == services.SCHEDULER and path.exists():
            return services.scheduler(int(number), self._layout, self._environment)
        raise SandboxError(
            f"the sandbox has no process {name!r}: see nova-perfvm sandbox status"
        )

    def _start_compute(self, name: str) -> None:
        for host in self.settings.pretended:
            if name == PREFIX + host.name:
                self.computes.start(host)
                return
        raise SandboxError(
            f"{name}: the sandbox has no such host: {self.settings.hosts}"
        )
