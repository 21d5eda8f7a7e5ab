# SPDX-License-Identifier: Apache-2.0
"""The tables of all services, made once."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nova_perfvm.sandbox.processes import running
from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.layout import Layout
from nova_perfvm.sandbox.processes.programs import Programs
from nova_perfvm.sandbox.processes.settings import REGION, SandboxSettings

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
}


class Schemas:
    """Fresh tables of each database, kept from the first time they were made.

    Making them takes half of a sandbox's first start, and comes out the same each
    time that the same OpenStack does it.  Several sandboxes may share a directory.
    """

    def __init__(self, directory: Path, programs: Programs, socket: Path) -> None:
        """Know the directory and the server; nothing is made yet.

        :param socket: that of a MariaDB that runs, whose root has no password
        """
        self._directory = directory
        self._programs = programs
        self._access = ("--no-defaults", "-uroot", f"--socket={socket}")

    def fill(self, database: str, make: Callable[[], object]) -> None:
        """Fill an empty database, by what was kept or by making it.

        :param make: makes the tables, and nothing that differs from one sandbox to
            the next
        :raises SandboxError: when a command fails
        """
        kept = self._directory / f"{database}.sql"
        if kept.exists():
            read = (database, "-e", f"source {kept}")
            running.run([self._programs["mariadb"], *self._access, *read])
            return
        make()
        self._directory.mkdir(parents=True, exist_ok=True)
        # Another sandbox may be about to read it.
        written = kept.with_suffix(f".{os.getpid()}")
        dump = (f"--result-file={written}", database)
        running.run([self._programs["mariadb-dump"], *self._access, *dump])
        written.replace(kept)


@dataclass
class Databases:
    """What fills the empty databases.

    :ivar env: the environment of the commands
    """

    layout: Layout
    settings: SandboxSettings
    environment: Environment
    schemas: Schemas
    env: dict[str, str]

    def make(self, tell: Callable[[str], None]) -> None:
        """Make all tables.

        :param tell: called with the name of each service that is done
        :raises SandboxError: when a command fails
        """
        jobs: dict[str, Callable[[], None]] = {
            # Longest first.
            "keystone": self._keystone,
            "neutron": lambda: self._fill("neutron"),
            "nova": self._nova,
            "glance": lambda: self._fill("glance"),
            "placement": lambda: self._fill("placement"),
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
        self._manage("nova_cell1", "cell_v2", "discover_hosts")

    def _fill(self, database: str) -> None:
        arguments = _TABLES[database][2].split()
        self.schemas.fill(database, lambda: self._manage(database, *arguments))

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
        self._fill("keystone")
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
            self._fill(database)
        cell0 = self.settings.database_url("nova_cell0")
        cells = ("nova_cell1", "cell_v2")
        self._manage(*cells, "map_cell0", "--database_connection", cell0)
        if "cell1" not in self._manage(*cells, "list_cells"):
            self._manage(*cells, "create_cell", "--name", "cell1")
