# SPDX-License-Identifier: Apache-2.0
"""Start the processes of a sandbox: all in order, or one by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from nova_perfvm.placement.host_schemes import host_scheme_of
from nova_perfvm.policy import Policy
from tests.processes import content, running, waiting
from tests.processes.computes import PREFIX, Computes, forget
from tests.processes.databases import Databases
from tests.processes.environment import Environment
from tests.processes.errors import SandboxError
from tests.processes.hostspec import PretendedHost
from tests.processes.layout import Layout
from tests.processes.ports import ADDRESS
from tests.processes.process import Processes, ProcessRecord
from tests.processes.programs import Programs
from tests.processes.servers import SandboxServers
from tests.processes.settings import CLOUD, SandboxSettings

SCHEDULER: Final = "nova-scheduler"
CONDUCTOR: Final = "nova-conductor"
CINDER_VOLUME: Final = "cinder-volume"


class _API(NamedTuple):
    """An API service that uwsgi runs.

    :ivar application: module of the WSGI application
    :ivar processes: number of workers; concurrent claims need at least two
    :ivar file: configuration file, for services without a variable that names it
    """

    application: str
    processes: int = 1
    file: str = ""


APIS: Final = {
    "keystone": _API("keystone.wsgi.api"),
    "placement": _API("placement.wsgi.api", 2),
    "glance": _API("glance.wsgi.api"),
    "neutron": _API("neutron.wsgi.api"),
    "cinder": _API("cinder.wsgi.api", file="cinder/cinder.conf"),
    "nova-api": _API("nova.wsgi.osapi_compute", 2),
}
_THREADS: Final = 8

# Configuration files of the services that run once, beside the APIs.
_SERVICES: Final = {
    CONDUCTOR: "nova/nova.conf",
    "cinder-scheduler": "cinder/cinder.conf",
    CINDER_VOLUME: "cinder/cinder.conf",
}


@dataclass
class Starter:
    """Starts processes whose configuration files exist already.

    :ivar tell: called with a line for each finished step
    """

    layout: Layout
    settings: SandboxSettings
    environment: Environment
    programs: Programs
    processes: Processes
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        self._computes = Computes(self.processes, self.layout, self.environment)
        servers = SandboxServers(
            self.layout, self.settings, self.programs, self.processes
        )
        # MariaDB first: its tables are created while the others start.
        self._servers = {
            "mariadb": servers.start_mariadb,
            "rabbitmq": servers.start_rabbitmq,
            "memcached": servers.start_memcached,
        }
        env = self.processes.environment()
        self._databases = Databases(
            self.layout, self.settings, self.environment, self.programs, env
        )

    def start_all(
        self, policy: Policy, schedulers: int, connect: Callable[[], Any]
    ) -> None:
        """Start all processes, and create the content that booting servers needs.

        :param schedulers: number of nova-schedulers
        :param connect: returns an SDK connection of the administrator
        :raises PerfVMError: when a process does not start
        """
        hosts = self.settings.pretended
        self._start_servers()
        self._start_controller(schedulers, connect)
        self._computes.start_and_await(hosts, connect)
        self.tell(f"{len(hosts)} computes")
        if self.settings.volumes:
            self._await_backend(connect().block_storage)
        self._once("hosts", self._databases.discover_hosts)
        self._once(
            "content",
            lambda: content.make_content(connect(), policy, hosts, self.tell),
        )
        scheme = host_scheme_of(policy)
        if scheme.scheme.enrolls and not scheme.by_slots:
            modes = scheme.enrolled_modes
            names = [host.name for host in hosts if host.mode in modes]
            self._once("enrolled", lambda: self._enroll(names))

    def add(self, hosts: Sequence[PretendedHost], connect: Callable[[], Any]) -> None:
        """Start more computes in a running sandbox, and map them to the cell.

        :raises PerfVMError: when a compute does not start
        """
        self._computes.start_and_await(hosts, connect)
        self._databases.discover_hosts()
        self.tell(f"{len(hosts)} more computes")

    def take_out(
        self, hosts: Sequence[PretendedHost], connect: Callable[[], Any]
    ) -> None:
        """Undo :meth:`add`, even an interrupted one.

        :raises openstack.exceptions.SDKException: when Nova refuses
        """
        self._computes.remove(hosts)
        forget(connect().compute, hosts)

    def _enroll(self, hosts: Sequence[str]) -> None:
        """Enroll hosts, with NUMA nodes from Nova's database, as no API shows them.

        The command runs in Nova's environment, which can read the database.
        """
        cloud = {"OS_CLIENT_CONFIG_FILE": str(self.layout.clouds), "OS_CLOUD": CLOUD}
        running.run(
            [
                *(self.environment.program("openstack"), "perfvm", "host", "enroll"),
                *(*hosts, "--policy", str(self.layout.policy), "--yes"),
                *("--from-nova-db", str(self.layout.etc / "nova" / "nova.conf")),
            ],
            env=self.processes.environment(cloud),
            log=self.layout.logs / "enroll.log",
        )
        self.tell(f"{len(hosts)} hosts enrolled")

    def _start_servers(self) -> None:
        with ThreadPoolExecutor(len(self._servers)) as pool:
            mariadb, *others = [pool.submit(run) for run in self._servers.values()]
            mariadb.result()
            self.tell("MariaDB")
            self._once("databases", lambda: self._databases.make(self.tell))
            for job in others:
                job.result()
        self.tell("RabbitMQ, memcached")

    def _start_controller(self, schedulers: int, connect: Callable[[], Any]) -> None:
        for name in ("keystone", "placement", "glance"):
            self._launch(name)
        self._await_api("keystone")
        self._once(
            "catalogue", lambda: content.make_catalogue(connect(), self.settings)
        )
        self.tell("keystone")
        schedule = [f"{SCHEDULER}-{n}" for n in range(1, schedulers + 1)]
        launched = ["neutron", "nova-api", "cinder", *_SERVICES, *schedule]
        for name in filter(self.settings.has, launched):
            self._launch(name)
        awaited = ["placement", "glance", "neutron", "nova-api", "cinder"]
        for name in filter(self.settings.has, awaited):
            self._await_api(name)
            self.tell(name)

    def _once(self, what: str, make: Callable[[], None]) -> None:
        """Call `make`, unless an earlier call has succeeded.

        :param what: name of the marker file
        """
        mark = self.layout.made / what
        if not mark.exists():
            make()
            mark.touch()

    def start(self, name: str) -> None:
        """Start a process; wait until an API or a server is ready.

        :raises SandboxError: when the name is unknown, or the process runs already or
            does not start
        """
        hosts = [h for h in self.settings.pretended if name == PREFIX + h.name]
        if hosts:
            self._computes.start(hosts)
        elif name in self._servers:
            self._servers[name]()
        else:
            self._launch(name)
        if name in APIS:
            self._await_api(name)

    def _launch(self, name: str) -> None:
        """Start a process of the controller without waiting until it is ready."""
        kind, _, _ = name.rpartition("-")
        # A later file overrides options of an earlier one.
        of_scheduler = [f"nova/{file}.conf" for file in ("scheduler", "nova", name)]
        if name in APIS and self.settings.has(name):
            self._start_api(name)
        elif name in _SERVICES and self.settings.has(name):
            self._start_service(name, name, _SERVICES[name])
        elif kind == SCHEDULER and (self.layout.etc / of_scheduler[-1]).exists():
            self._start_service(name, SCHEDULER, *of_scheduler)
        else:
            raise SandboxError(
                f"the sandbox has no process {name!r}: see "
                "python -m tests.sandbox status"
            )

    def _await_api(self, name: str) -> None:
        url = self.settings.url(name, "/")
        record = self._started(name)
        waiting.until_ready(self.processes, record, lambda: waiting.answers(url))

    def _started(self, name: str) -> ProcessRecord:
        record = self.processes.find(name)
        if record is None:
            raise SandboxError(f"{name} was stopped while it started")
        return record

    def _await_backend(self, cinder: Any) -> None:
        """Wait until cinder-scheduler knows a pool for volumes."""
        record = self._started(CINDER_VOLUME)

        def reported() -> bool:
            waiting.check_alive(self.processes, record)
            answer = cinder.get("/scheduler-stats/get_pools")
            return answer.status_code == 200 and bool(answer.json()["pools"])

        waiting.until(reported, f"{CINDER_VOLUME} to report", waiting.LIMIT_S)
        self.tell(CINDER_VOLUME)

    def _start_api(self, name: str) -> None:
        api = APIS[name]
        port = self.settings.ports[name]
        command = [
            self.environment.program("uwsgi"),
            *("--http-socket", f"{ADDRESS}:{port}"),
            *("--module", f"{api.application}:application"),
            *("--virtualenv", str(self.environment.directory)),
            *("--procname-prefix", f"{name} "),
            *("--processes", str(api.processes)),
            *("--threads", str(_THREADS)),
            *("--buffer-size", "65535"),
            *("--add-header", "Connection: close"),
            *("--hook-master-start", "unix_signal:15 gracefully_kill_them_all"),
            *("--worker-reload-mercy", "5"),
            *("--master", "--enable-threads", "--thunder-lock", "--die-on-term"),
            # --lazy-apps: workers must not share connections to the database.
            *("--lazy-apps", "--need-app", "--disable-logging"),
        ]
        if api.file:
            command += ["--pyargv", f"--config-file={self.layout.etc / api.file}"]
        env = {
            f"OS_{service.upper()}_CONFIG_DIR": str(self.layout.etc / service)
            for service in ("keystone", "placement", "glance", "neutron", "nova")
        }
        # Nova reads the paste pipeline from the first file, whatever [wsgi] says.
        env["OS_NOVA_CONFIG_FILES"] = "api-paste.ini;nova.conf"
        self.processes.start(name, command, env=env, port=port)

    def _start_service(self, name: str, program: str, *files: str) -> None:
        command = [self.environment.program(program)]
        for file in files:
            command += ["--config-file", str(self.layout.etc / file)]
        command += ["--log-file", str(self.layout.logs / f"{name}.log")]
        self.processes.start(name, command)
