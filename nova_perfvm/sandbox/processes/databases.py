# SPDX-License-Identifier: Apache-2.0
"""The tables of all services, made once."""

from __future__ import annotations

import functools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from nova_perfvm.sandbox.processes import running
from nova_perfvm.sandbox.processes.configuration import common

if TYPE_CHECKING:
    from collections.abc import Callable

    from nova_perfvm.sandbox.processes.environment import Environment
    from nova_perfvm.sandbox.processes.layout import Layout
    from nova_perfvm.sandbox.processes.schemas import Schemas
    from nova_perfvm.sandbox.processes.settings import SandboxSettings


class Databases:
    """What fills the empty databases."""

    def __init__(
        self,
        layout: Layout,
        settings: SandboxSettings,
        environment: Environment,
        schemas: Schemas,
        env: dict[str, str],
    ) -> None:
        """Know where everything is.

        :param env: the environment of the commands
        """
        self._layout = layout
        self._settings = settings
        self._environment = environment
        self._schemas = schemas
        self._env = env

    def make(self, tell: Callable[[str], None]) -> None:
        """Make all tables.

        :param tell: called with the name of each service that is done
        :raises SandboxError: when a command fails
        """
        jobs: dict[str, Callable[[], None]] = {
            # Longest first.
            "keystone": self._keystone,
            "neutron": self._neutron,
            "nova": self._nova,
            "glance": self._glance,
            "placement": self._placement,
        }

        def job(name: str) -> None:
            jobs[name]()
            tell(f"database of {name}")

        workers = min(len(jobs), max(2, os.cpu_count() or 1))
        with ThreadPoolExecutor(workers) as pool:
            for result in [pool.submit(job, name) for name in jobs]:
                result.result()

    def discover_hosts(self) -> None:
        """Let nova-api and the scheduler know of new computes."""
        self._nova_manage("cell_v2", "discover_hosts")

    def _run(self, service: str, program: str, *arguments: str) -> str:
        # Arguments are shown when a command fails, and to anyone who runs ps.
        password = {"OS_BOOTSTRAP_PASSWORD": self._settings.password}
        return running.run(
            [self._environment.program(program), *arguments],
            env=self._env | password,
            log=self._layout.logs / f"{service}-manage.log",
            password=self._settings.password,
        )

    def _keystone(self) -> None:
        conf = ("--config-file", str(self._layout.etc / "keystone" / "keystone.conf"))
        self._schemas.fill(
            "keystone",
            lambda: self._run("keystone", "keystone-manage", *conf, "db_sync"),
        )
        owner: tuple[str, ...] = ()
        if os.geteuid() == 0:
            # Root has to say whose the keys shall be; a name would be another's
            # that LOGNAME has.
            owner = ("--keystone-user", "0", "--keystone-group", str(os.getegid()))
        for keys in ("fernet", "credential"):
            (self._layout.data / "keystone" / keys).mkdir(parents=True, exist_ok=True)
            self._run("keystone", "keystone-manage", *conf, f"{keys}_setup", *owner)
        url = self._settings.url("keystone", "/v3")
        self._run(
            "keystone",
            "keystone-manage",
            *(*conf, "bootstrap"),
            *("--bootstrap-region-id", common.REGION),
            *("--bootstrap-admin-url", url),
            *("--bootstrap-internal-url", url),
            *("--bootstrap-public-url", url),
        )

    def _neutron(self) -> None:
        etc = self._layout.etc / "neutron"
        files = (
            *("--config-file", str(etc / "neutron.conf")),
            *("--config-file", str(etc / "plugins" / "ml2" / "ml2_conf.ini")),
        )
        self._schemas.fill(
            "neutron",
            lambda: self._run(
                "neutron", "neutron-db-manage", *files, "upgrade", "heads"
            ),
        )

    def _nova(self) -> None:
        self._schemas.fill("nova_api", lambda: self._nova_manage("api_db", "sync"))
        # What no host took lives in cell0.
        for cell, conf in (("cell0", "nova-cell0.conf"), ("cell1", "nova.conf")):
            self._schemas.fill(
                f"nova_{cell}",
                functools.partial(
                    self._nova_manage, "db", "sync", "--local_cell", conf=conf
                ),
            )
        cell0 = self._settings.database_url("nova_cell0")
        self._nova_manage("cell_v2", "map_cell0", "--database_connection", cell0)
        if "cell1" not in self._nova_manage("cell_v2", "list_cells"):
            self._nova_manage("cell_v2", "create_cell", "--name", "cell1")

    def _nova_manage(self, *arguments: str, conf: str = "nova.conf") -> str:
        path = str(self._layout.etc / "nova" / conf)
        return self._run("nova", "nova-manage", "--config-file", path, *arguments)

    def _glance(self) -> None:
        path = str(self._layout.etc / "glance" / "glance-api.conf")
        self._schemas.fill(
            "glance",
            lambda: self._run(
                "glance", "glance-manage", "--config-file", path, "db_sync"
            ),
        )

    def _placement(self) -> None:
        path = str(self._layout.etc / "placement" / "placement.conf")
        self._schemas.fill(
            "placement",
            lambda: self._run(
                "placement", "placement-manage", "--config-file", path, "db", "sync"
            ),
        )
