# SPDX-License-Identifier: Apache-2.0
"""A private MariaDB."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from nova_perfvm.sandbox.processes import running, waiting
from nova_perfvm.sandbox.processes.ports import ADDRESS

if TYPE_CHECKING:
    from nova_perfvm.sandbox.processes.layout import Layout
    from nova_perfvm.sandbox.processes.process import Processes
    from nova_perfvm.sandbox.processes.programs import Programs
    from nova_perfvm.sandbox.processes.settings import SandboxSettings

DATABASES: Final = (
    "keystone",
    "placement",
    "glance",
    "neutron",
    "nova_api",
    "nova_cell0",
    "nova_cell1",
)


def start(
    processes: Processes, programs: Programs, layout: Layout, settings: SandboxSettings
) -> None:
    """Start MariaDB with all databases.

    It runs as whoever called, root included: user mysql seldom reaches a
    directory below root's home.  So it listens on 127.0.0.1 only, its own root
    comes through the socket in a private directory, and ``openstack`` has no
    rights beyond the databases.

    :raises SandboxError: when it does not start
    """
    data = layout.data / "mariadb"
    socket = layout.database_socket
    # Root has to say that it means it; nobody else may choose.
    user = ["--user=root"] if os.geteuid() == 0 else []
    if not (data / "mysql").exists():
        data.mkdir(parents=True, exist_ok=True)
        running.run(
            [
                programs.mariadb_install_db,
                "--no-defaults",
                *user,
                f"--datadir={data}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            log=processes.output("mariadb"),
        )
    record = processes.start(
        "mariadb",
        [
            programs.mariadbd,
            "--no-defaults",
            *user,
            f"--datadir={data}",
            f"--socket={socket}",
            f"--pid-file={data}/pid",
            f"--bind-address={ADDRESS}",
            f"--port={settings.ports['mariadb']}",
            "--skip-name-resolve",
            "--max-connections=2000",
            "--character-set-server=utf8mb4",
            "--collation-server=utf8mb4_general_ci",
            # Data that a power cut may cost: nobody needs them.
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-flush-method=nosync",
            "--innodb-buffer-pool-size=256M",
            "--performance-schema=OFF",
        ],
        port=settings.ports["mariadb"],
    )
    waiting.until_listening(processes, record)
    sql = "".join(
        f"CREATE DATABASE IF NOT EXISTS {name};"
        f"GRANT ALL ON {name}.* TO 'openstack'@'{ADDRESS}' "
        f"IDENTIFIED BY '{settings.password}';"
        for name in DATABASES
    )
    running.run(
        [programs.mariadb, "--no-defaults", "-uroot", f"--socket={socket}", "-e", sql],
        password=settings.password,
    )
