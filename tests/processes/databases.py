# SPDX-License-Identifier: Apache-2.0
"""The tables of all services, made once."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from tests.processes import running
from tests.processes.environment import Environment
from tests.processes.layout import Layout
from tests.processes.programs import Programs
from tests.processes.settings import REGION, SandboxSettings

# What makes the tables of a database: a program, its configuration files in the
# directory of the service, and its arguments.
_TABLES: Final = {
    "keystone": ("keystone-manage", ["keystone.conf"], "db_sync"),
    "neutron": (
        "neutron-db-manage",
        ["neutron.conf", "plugins/ml2/ml2_conf.ini"],
        "upgrade heads",
    ),
    "nova_api": ("nova-manage", ["nova.conf"], "api_db sync"),
    # What no host took lives in cell0.
    "nova_cell0": ("nova-manage", ["nova-cell0.conf"], "db sync --local_cell"),
    "nova_cell1": ("nova-manage", ["nova.conf"], "db sync --local_cell"),
    "glance": ("glance-manage", ["glance-api.conf"], "db_sync"),
    "placement": ("placement-manage", ["placement.conf"], "db sync"),
    "cinder": ("cinder-manage", ["cinder.conf"], "db sync"),
}


@dataclass
class Databases:
    """What fills the empty databases of a MariaDB that runs.

    Fresh tables of each are kept beside OpenStack's environment from the first time
    that they were made, which takes half of a sandbox's first start. They come out
    the same each time that the same OpenStack makes them.

    :ivar env: the environment of the commands
    """

    layout: Layout
    settings: SandboxSettings
    environment: Environment
    programs: Programs
    env: dict[str, str]

    def make(self, tell: Callable[[str], None]) -> None:
        """Make all tables.

        :param tell: called with the name of each service that is done
        :raises SandboxError: when a command fails
        """
        jobs: dict[str, Callable[[], None]] = {
            # Longest first.
            "keystone": self._keystone,
            "neutron": lambda: self.fill("neutron"),
            "nova": self._nova,
            "cinder": lambda: self.fill("cinder"),
            "glance": lambda: self.fill("glance"),
            "placement": lambda: self.fill("placement"),
        }

        def job(name: str) -> None:
            jobs[name]()
            tell(f"database of {name}")

        with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
            names = filter(self.settings.has, jobs)
            for result in [pool.submit(job, name) for name in names]:
                result.result()

    def fill(self, database: str) -> None:
        """Fill an empty database, by what was kept or by making it.

        :raises SandboxError: when a command fails
        """
        kept = self.environment.schemas / f"{database}.sql"
        access = ("--no-defaults", "-uroot", f"--socket={self.layout.database_socket}")
        if kept.exists():
            read = (database, "-e", f"source {kept}")
            running.run([self.programs["mariadb"], *access, *read])
            return
        self._manage(database, *_TABLES[database][2].split())
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Another sandbox may be about to read it.
        written = kept.with_suffix(f".{os.getpid()}")
        dump = (f"--result-file={written}", database)
        running.run([self.programs["mariadb-dump"], *access, *dump])
        written.replace(kept)

    def discover_hosts(self) -> None:
        """Let nova-api and the scheduler know of new computes."""
        self._manage("nova_cell1", "cell_v2", "discover_hosts")

    def _manage(self, database: str, *arguments: str) -> str:
        """Run the program that makes the tables of a database."""
        program, files, _ = _TABLES[database]
        service = database.partition("_")[0]
        command = [self.environment.program(program)]
        for file in files:
            command += ["--config-file", str(self.layout.etc / service / file)]
        password = self.settings.password
        return running.run(
            [*command, *arguments],
            # Arguments are shown when a command fails, and to anyone who runs ps.
            env=self.env | {"OS_BOOTSTRAP_PASSWORD": password},
            log=self.layout.logs / f"{service}-manage.log",
            password=password,
        )

    def _keystone(self) -> None:
        self.fill("keystone")
        owner: tuple[str, ...] = ()
        if os.geteuid() == 0:
            # Root has to say whose the keys shall be; a name would be another's
            # that LOGNAME has.
            owner = ("--keystone-user", "0", "--keystone-group", str(os.getegid()))
        for keys in ("fernet", "credential"):
            (self.layout.data / "keystone" / keys).mkdir(parents=True, exist_ok=True)
            self._manage("keystone", f"{keys}_setup", *owner)
        url = self.settings.url("keystone", "/v3")
        self._manage(
            *("keystone", "bootstrap", "--bootstrap-region-id", REGION),
            *("--bootstrap-admin-url", url),
            *("--bootstrap-internal-url", url),
            *("--bootstrap-public-url", url),
        )

    def _nova(self) -> None:
        for database in ("nova_api", "nova_cell0", "nova_cell1"):
            self.fill(database)
        cell0 = self.settings.database_url("nova_cell0")
        cells = ("nova_cell1", "cell_v2")
        self._manage(*cells, "map_cell0", "--database_connection", cell0)
        if "cell1" not in self._manage(*cells, "list_cells"):
            self._manage(*cells, "create_cell", "--name", "cell1")
