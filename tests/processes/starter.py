# SPDX-License-Identifier: Apache-2.0
"""Start the processes of a sandbox: all in their order, or one by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from nova_perfvm.placement.schemes import scheme_of
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
    """A service that uwsgi runs.

    :ivar processes: requests are claimed concurrently only where several serve them
    :ivar file: its configuration, where no variable of the environment names it
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

# What else runs once: each with its configuration file.
_SERVICES: Final = {
    CONDUCTOR: "nova/nova.conf",
    "cinder-scheduler": "cinder/cinder.conf",
    CINDER_VOLUME: "cinder/cinder.conf",
}


@dataclass
class Starter:
    """What starts processes; their configuration files exist already.

    :ivar tell: called with each step that is done
    """

    layout: Layout
    settings: SandboxSettings
    environment: Environment
    programs: Programs
    processes: Processes
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        """Start nothing yet."""
        self._computes = Computes(self.processes, self.layout, self.environment)
        servers = SandboxServers(
            self.layout, self.settings, self.programs, self.processes
        )
        # MariaDB first: the databases are made meanwhile.
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
        """Start everything, and make what a cloud needs that boots servers.

        :param schedulers: number of nova-schedulers
        :param connect: gives an SDK connection of the administrator
        :raises PerfVMError: when something does not come up
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
        scheme = scheme_of(policy)
        if scheme.enrolls and not scheme.by_slots:
            modes = scheme.enrolled_modes
            names = [host.name for host in hosts if host.mode in modes]
            self._once("enrolled", lambda: self._enroll(names))

    def add(self, hosts: Sequence[PretendedHost], connect: Callable[[], Any]) -> None:
        """Start more computes beside those that run, and let Nova know of them.

        :raises PerfVMError: when one does not come up
        """
        self._computes.start_and_await(hosts, connect)
        self._databases.discover_hosts()
        self.tell(f"{len(hosts)} more computes")

    def take_out(
        self, hosts: Sequence[PretendedHost], connect: Callable[[], Any]
    ) -> None:
        """Undo :meth:`add`, however far it came.

        :raises openstack.exceptions.SDKException: when Nova refuses
        """
        self._computes.remove(hosts)
        forget(connect().compute, hosts)

    def _enroll(self, hosts: Sequence[str]) -> None:
        """Enroll hosts by the NUMA nodes that Nova's database has, as no API shows any.

        That is read in the environment of Nova.
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
        """Make something, unless it was made to its end before."""
        mark = self.layout.made / what
        if not mark.exists():
            make()
            mark.touch()

    def start(self, name: str) -> None:
        """Start a process; an API or a server is then ready.

        :raises SandboxError: when there is none of that name, it runs already,
            or it does not come up
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
        """Start a process of the controller, and do not wait for it."""
        kind, _, _ = name.rpartition("-")
        # The generated file names where the policy would be on a controller.
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
        """Wait until cinder-scheduler knows where volumes can be made."""
        record = self._started(CINDER_VOLUME)

        def reported() -> bool:
            waiting.check_alive(self.processes, record)
            answer = cinder.get("/scheduler-stats/get_pools")
            return answer.status_code == 200 and bool(answer.json()["pools"])

        waiting.until(reported, f"{CINDER_VOLUME} to report", waiting.LIMIT_S)
        self.tell(CINDER_VOLUME)

    def _start_api(self, name: str) -> None:
        """Start uwsgi with the application of an API."""
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
            # Connections to the database must not be shared by the workers.
            *("--lazy-apps", "--need-app", "--disable-logging"),
        ]
        if api.file:
            command += ["--pyargv", f"--config-file={self.layout.etc / api.file}"]
        env = {
            f"OS_{service.upper()}_CONFIG_DIR": str(self.layout.etc / service)
            for service in ("keystone", "placement", "glance", "neutron", "nova")
        }
        # Nova reads the paste pipeline from the first of these, whatever [wsgi] says.
        env["OS_NOVA_CONFIG_FILES"] = "api-paste.ini;nova.conf"
        self.processes.start(name, command, env=env, port=port)

    def _start_service(self, name: str, program: str, *files: str) -> None:
        command = [self.environment.program(program)]
        for file in files:
            command += ["--config-file", str(self.layout.etc / file)]
        command += ["--log-file", str(self.layout.logs / f"{name}.log")]
        self.processes.start(name, command)
