# SPDX-License-Identifier: Apache-2.0
"""Start the processes of a sandbox: all in their order, or one by its name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm.policy import Policy
from nova_perfvm.sandbox.processes import content, waiting
from nova_perfvm.sandbox.processes.computes import (
    FORK_SERVER,
    PREFIX,
    Computes,
    await_reports,
)
from nova_perfvm.sandbox.processes.databases import Databases, Schemas
from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.errors import SandboxError
from nova_perfvm.sandbox.processes.layout import Layout
from nova_perfvm.sandbox.processes.ports import ADDRESS
from nova_perfvm.sandbox.processes.process import Processes
from nova_perfvm.sandbox.processes.programs import Programs
from nova_perfvm.sandbox.processes.servers import SandboxServers
from nova_perfvm.sandbox.processes.settings import SandboxSettings

SCHEDULER: Final = "nova-scheduler"
CONDUCTOR: Final = "nova-conductor"

# Each with its application, and processes: requests are claimed concurrently only
# where several processes serve them.
APIS: Final = {
    "keystone": ("keystone.wsgi.api", 1),
    "placement": ("placement.wsgi.api", 2),
    "glance": ("glance.wsgi.api", 1),
    "neutron": ("neutron.wsgi.api", 1),
    "nova-api": ("nova.wsgi.osapi_compute", 2),
}
_THREADS: Final = 8


@dataclass
class Starter:
    """What starts processes; their configuration files exist already."""

    layout: Layout
    settings: SandboxSettings
    environment: Environment
    programs: Programs
    processes: Processes

    def __post_init__(self) -> None:
        """Start nothing yet."""
        layout, settings, processes = self.layout, self.settings, self.processes
        environment, programs = self.environment, self.programs
        self._computes = Computes(processes, layout, environment)
        servers = SandboxServers(layout, settings, programs, processes)
        # MariaDB first: the databases are made meanwhile.
        self._servers = {
            "mariadb": servers.start_mariadb,
            "rabbitmq": servers.start_rabbitmq,
            "memcached": servers.start_memcached,
        }
        schemas = Schemas(environment.schemas, programs, layout.database_socket)
        self._databases = Databases(
            layout, settings, environment, schemas, processes.environment()
        )

    def start_all(
        self,
        policy: Policy,
        schedulers: int,
        connect: Callable[[], Any],
        tell: Callable[[str], None],
    ) -> None:
        """Start everything, and make what a cloud needs that boots servers.

        :param schedulers: number of nova-schedulers
        :param connect: gives an SDK connection of the administrator
        :param tell: called with each step that is done
        :raises PerfVMError: when something does not come up
        """
        hosts = self.settings.pretended
        self._start_servers(tell)
        # Imports for some seconds, on a core that waits for disks meanwhile.
        self.launch(FORK_SERVER)
        self._start_controller(schedulers, connect, tell)
        since = dt.datetime.now(dt.UTC)
        for host in hosts:
            self.launch(PREFIX + host.name)
        await_reports(self.processes, connect(), hosts, since)
        tell(f"{len(hosts)} computes")
        for _ in self._once("hosts"):
            self._databases.discover_hosts()
        for _ in self._once("content"):
            content.make_content(connect(), policy, hosts, tell)

    def _start_servers(self, tell: Callable[[str], None]) -> None:
        with ThreadPoolExecutor(len(self._servers)) as pool:
            mariadb, *others = [pool.submit(run) for run in self._servers.values()]
            mariadb.result()
            tell("MariaDB")
            for _ in self._once("databases"):
                self._databases.make(tell)
            for job in others:
                job.result()
        tell("RabbitMQ, memcached")

    def _start_controller(
        self, schedulers: int, connect: Callable[[], Any], tell: Callable[[str], None]
    ) -> None:
        for name in ("keystone", "placement", "glance"):
            self.launch(name)
        self.await_api("keystone")
        for _ in self._once("catalogue"):
            content.make_catalogue(connect(), self.settings)
        tell("keystone")
        names = [f"{SCHEDULER}-{n}" for n in range(1, schedulers + 1)]
        for name in ("neutron", "nova-api", CONDUCTOR, *names):
            self.launch(name)
        for name in ("placement", "glance", "neutron", "nova-api"):
            self.await_api(name)
            tell(name)

    def _once(self, what: str) -> Iterator[None]:
        """Run a loop's body if it never came to its end before."""
        mark = self.layout.made / what
        if not mark.exists():
            yield
            mark.touch()

    def start(self, name: str) -> None:
        """Start a process; an API or a server is then ready.

        :raises SandboxError: when there is none of that name, it runs already,
            or it does not come up
        """
        if name == "epmd":
            # RabbitMQ starts it.
            name = "rabbitmq"
        if name in self._servers:
            self._servers[name]()
            return
        self.launch(name)
        if name in APIS:
            self.await_api(name)

    def launch(self, name: str) -> None:
        """Start an OpenStack process, and do not wait for it."""
        kind, _, _ = name.rpartition("-")
        etc = self.layout.etc / "nova"
        if name == FORK_SERVER:
            self._computes.start_fork_server()
        elif name.startswith(PREFIX):
            self._start_compute(name)
        elif name in APIS:
            self._start_api(name)
        elif name == CONDUCTOR:
            self._start_nova(name, CONDUCTOR, "nova.conf")
        elif kind == SCHEDULER and (etc / f"{name}.conf").exists():
            files = ("nova.conf", "scheduler.conf", f"{name}.conf")
            self._start_nova(name, SCHEDULER, *files)
        else:
            raise SandboxError(
                f"the sandbox has no process {name!r}: see nova-perfvm sandbox status"
            )

    def await_api(self, name: str) -> None:
        """Wait until an API answers."""
        record = self.processes.find(name)
        if record is None:
            raise SandboxError(f"{name} was not started")
        url = self.settings.url(name, "/")
        waiting.until_answering(self.processes, record, url)

    def _start_compute(self, name: str) -> None:
        for host in self.settings.pretended:
            if name == PREFIX + host.name:
                self._computes.start(host)
                return
        raise SandboxError(
            f"{name}: the sandbox has no such host: {self.settings.hosts}"
        )

    def _start_api(self, name: str) -> None:
        """Start uwsgi with the application of an API."""
        module, processes = APIS[name]
        port = self.settings.ports[name]
        command = [
            self.environment.program("uwsgi"),
            *("--http-socket", f"{ADDRESS}:{port}"),
            *("--module", f"{module}:application"),
            *("--virtualenv", str(self.environment.directory)),
            *("--procname-prefix", f"{name} "),
            *("--processes", str(processes)),
            *("--threads", str(_THREADS)),
            *("--buffer-size", "65535"),
            *("--add-header", "Connection: close"),
            *("--hook-master-start", "unix_signal:15 gracefully_kill_them_all"),
            *("--worker-reload-mercy", "5"),
            *("--master", "--enable-threads", "--thunder-lock", "--die-on-term"),
            # Connections to the database must not be shared by the workers.
            *("--lazy-apps", "--need-app", "--disable-logging"),
        ]
        env = {
            f"OS_{service.upper()}_CONFIG_DIR": str(self.layout.etc / service)
            for service in ("keystone", "placement", "glance", "neutron", "nova")
        }
        # Nova reads the paste pipeline from the first of these, whatever [wsgi] says.
        env["OS_NOVA_CONFIG_FILES"] = "api-paste.ini;nova.conf"
        self.processes.start(name, command, env=env, port=port)

    def _start_nova(self, name: str, program: str, *files: str) -> None:
        command = [self.environment.program(program)]
        for file in files:
            command += ["--config-file", str(self.layout.etc / "nova" / file)]
        command += ["--log-file", str(self.layout.logs / f"{name}.log")]
        self.processes.start(name, command)
