# SPDX-License-Identifier: Apache-2.0
"""Create the database tables of all services, or load a saved dump of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from nova_perfvm.sandbox.processes import running
from nova_perfvm.sandbox.processes.environment import Environment
from nova_perfvm.sandbox.processes.layout import Layout
from nova_perfvm.sandbox.processes.programs import Programs
from nova_perfvm.sandbox.processes.settings import REGION, SandboxSettings

# Command that creates the tables of a database: program, configuration files in the
# service's directory, arguments.
_TABLES: Final = {
    "keystone": ("keystone-manage", ["keystone.conf"], "db_sync"),
    "neutron": (
        "neutron-db-manage",
        ["neutron.conf", "plugins/ml2/ml2_conf.ini"],
        "upgrade heads",
    ),
    "nova_api": ("nova-manage", ["nova.conf"], "api_db sync"),
    # cell0 keeps servers that no host took.
    "nova_cell0": ("nova-manage", ["nova-cell0.conf"], "db sync --local_cell"),
    "nova_cell1": ("nova-manage", ["nova.conf"], "db sync --local_cell"),
    "glance": ("glance-manage", ["glance-api.conf"], "db_sync"),
    "placement": ("placement-manage", ["placement.conf"], "db sync"),
    "cinder": ("cinder-manage", ["cinder.conf"], "db sync"),
}


@dataclass
class Databases:
    """Fills the empty databases of a running MariaDB.

    Creating the tables takes half of a sandbox's first start. So a dump of each fresh
    database is saved in OpenStack's environment, where the same OpenStack would always
    create the same tables.

    :ivar env: the environment of the commands
    """

    layout: Layout
    settings: SandboxSettings
    environment: Environment
    programs: Programs
    env: dict[str, str]

    def make(self, tell: Callable[[str], None]) -> None:
        """Create all tables, keys and cells.

        :param tell: called with a line for each finished service
        :raises SandboxError: when a command fails
        """
        jobs: dict[str, Callable[[], None]] = {
            # The slowest jobs first.
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
        """Create the tables of an empty database from the saved dump, or save one.

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
        # Rename a complete dump: another sandbox may read it at any time.
        written = kept.with_suffix(f".{os.getpid()}")
        dump = (f"--result-file={written}", database)
        running.run([self.programs["mariadb-dump"], *access, *dump])
        written.replace(kept)

    def discover_hosts(self) -> None:
        """Map new computes to their cell, so that nova-scheduler finds them."""
        self._manage("nova_cell1", "cell_v2", "discover_hosts")

    def _manage(self, database: str, *arguments: str) -> str:
        """Run the management program of a database's service; return its output."""
        program, files, _ = _TABLES[database]
        service = database.partition("_")[0]
        command = [self.environment.program(program)]
        for file in files:
            command += ["--config-file", str(self.layout.etc / service / file)]
        password = self.settings.password
        return running.run(
            [*command, *arguments],
            # As a variable: ps and error messages show a command's arguments.
            env=self.env | {"OS_BOOTSTRAP_PASSWORD": password},
            log=self.layout.logs / f"{service}-manage.log",
            password=password,
        )

    def _keystone(self) -> None:
        self.fill("keystone")
        owner: tuple[str, ...] = ()
        if os.geteuid() == 0:
            # As root, keystone-manage needs the keys' owner.  The owner is given by
            # number, as a name could be that of LOGNAME, another user.
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
