# SPDX-License-Identifier: Apache-2.0
"""A MariaDB with the tables of Placement."""

import contextlib
import tempfile
from pathlib import Path

import pymysql

from tests.processes import settings as sandbox_settings
from tests.processes.files import database_options
from tests.processes.layout import Layout
from tests.processes.process import Processes
from tests.processes.programs import find_programs
from tests.processes.servers import SandboxServers


class Database:
    """A MariaDB of our own in a directory."""

    def __init__(self, directory):
        """Know where everything is; nothing is started yet.

        :raises SandboxError: when MariaDB is not installed
        """
        self.programs = find_programs(("mariadbd", "mariadb-install-db", "mariadb"))
        self.layout = Layout(Path(directory))
        self.settings = sandbox_settings.new_settings("", "")
        self.processes = Processes(self.layout)

    def __enter__(self):
        self.layout.logs.mkdir()
        try:
            SandboxServers(
                self.layout, self.settings, self.programs, self.processes
            ).start_mariadb()
        except BaseException:
            self.processes.stop(["mariadb"])
            raise
        return self

    def __exit__(self, *_):
        self.processes.stop(["mariadb"])

    def execute(self, *statements):
        """Execute SQL as root, and return the rows of the last statement."""
        with (
            contextlib.closing(
                pymysql.connect(
                    user="root", unix_socket=str(self.layout.database_socket)
                )
            ) as connection,
            connection.cursor() as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall()

    @property
    def version(self):
        """What the server says of itself."""
        return self.execute("SELECT version()")[0][0]

    @property
    def has_snapshot_isolation(self):
        """Whether it knows innodb_snapshot_isolation."""
        return bool(self.execute("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'"))

    def configure(self, level, *, snapshot_isolation):
        """Set what connections that are made from now on have."""
        self.execute(f"SET GLOBAL TRANSACTION ISOLATION LEVEL {level}")
        if self.has_snapshot_isolation:
            self.execute(
                f"SET GLOBAL innodb_snapshot_isolation = {int(snapshot_isolation)}"
            )

    def url(self, database):
        """Return the address of a database as services are told it."""
        return self.settings.database_url(database)

    def placement_conf(self, database, options):
        """Write placement.conf, and return its directory."""
        self.layout.etc.mkdir(exist_ok=True)
        etc = tempfile.mkdtemp(prefix="placement-", dir=self.layout.etc)
        options = {"allocation_conflict_retry_count": 1} | options
        lines = {True: [], False: []}
        for name, value in options.items():
            lines[name.startswith("optimize_")].append(f"{name} = {value}")
        text = "\n".join(
            (
                *("[DEFAULT]", f"log_file = {self.log}"),
                *("use_stderr = false", "default_log_levels = placement=WARN"),
                *("[api]", "auth_strategy = noauth2"),
                *("[placement]", *lines[False]),
                *("[workarounds]", *lines[True]),
                *("[placement_database]", database_options(self.url(database))),
                "sync_on_startup = true",
            )
        )
        Path(etc, "placement.conf").write_text(text + "\n", encoding="utf-8")
        return etc

    @property
    def log(self):
        """The log of all Placement processes."""
        return self.layout.logs / "placement.log"
