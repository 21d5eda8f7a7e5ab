# SPDX-License-Identifier: Apache-2.0
"""The sandbox's own MariaDB, RabbitMQ and memcached."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Final

from nova_perfvm.sandbox.processes import running, waiting
from nova_perfvm.sandbox.processes.layout import Layout
from nova_perfvm.sandbox.processes.ports import ADDRESS
from nova_perfvm.sandbox.processes.process import Processes
from nova_perfvm.sandbox.processes.programs import Programs
from nova_perfvm.sandbox.processes.settings import SandboxSettings

DATABASES: Final = (
    *("keystone", "placement", "glance", "neutron"),
    *("nova_api", "nova_cell0", "nova_cell1", "cinder"),
)
VHOSTS: Final = ("nova", "neutron", "cinder")

_RABBITMQ_CONF: Final = """\
loopback_users = none
vm_memory_high_watermark.relative = 0.2
disk_free_limit.absolute = 50MB
"""


@dataclass
class SandboxServers:
    """Starts the servers of one sandbox, and waits until they listen."""

    layout: Layout
    settings: SandboxSettings
    programs: Programs
    processes: Processes

    def _start(self, name: str, *command: str, **options: Any) -> None:
        port = self.settings.ports[name]
        record = self.processes.start(name, command, port=port, **options)
        waiting.until_ready(self.processes, record, lambda: waiting.listens(port))

    def start_memcached(self) -> None:
        """Start memcached, which caches keystone's tokens.

        :raises SandboxError: when memcached does not start
        """
        port = str(self.settings.ports["memcached"])
        # memcached refuses to run as root.
        user = ("-u", "nobody") if os.geteuid() == 0 else ()
        command = (self.programs["memcached"], "-l", ADDRESS, "-p", port, "-m", "64")
        self._start("memcached", *command, *user)

    def start_mariadb(self) -> None:
        """Start MariaDB, and create all databases.

        MariaDB runs as the calling user, even as root, since user mysql may not reach
        a directory below root's home.  So MariaDB listens on 127.0.0.1 only, its
        administrator logs in through the socket in a private directory, and user
        ``openstack`` has rights on the databases only.

        :raises SandboxError: when MariaDB does not start
        """
        data = self.layout.data / "mariadb"
        password = self.settings.password
        # As root, mariadbd demands an explicit --user; other users cannot choose one.
        user = ("--user=root",) if os.geteuid() == 0 else ()
        # Two MariaDBs that start at once would delete each other's tables in /tmp.
        temporary = self.layout.data / "mariadb-tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        where = (f"--datadir={data}", f"--tmpdir={temporary}")
        common = ("--no-defaults", *user, *where)
        if not (data / "mysql").exists():
            data.mkdir(parents=True, exist_ok=True)
            running.run(
                [
                    *(self.programs["mariadb-install-db"], *common),
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                ],
                log=self.processes.output("mariadb"),
            )
        self._start(
            "mariadb",
            *(self.programs["mariadbd"], *common),
            f"--socket={self.layout.database_socket}",
            f"--pid-file={data}/pid",
            f"--bind-address={ADDRESS}",
            f"--port={self.settings.ports['mariadb']}",
            "--skip-name-resolve",
            "--max-connections=2000",
            "--character-set-server=utf8mb4",
            "--collation-server=utf8mb4_general_ci",
            # Faster, but a power cut may lose data, which a sandbox can afford.
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-flush-method=nosync",
            "--innodb-buffer-pool-size=256M",
            "--performance-schema=OFF",
        )
        sql = "".join(
            f"CREATE DATABASE IF NOT EXISTS {name};"
            f"GRANT ALL ON {name}.* TO 'openstack'@'{ADDRESS}' "
            f"IDENTIFIED BY '{password}';"
            for name in DATABASES
        )
        running.run(
            [
                *(self.programs["mariadb"], "--no-defaults", "-uroot"),
                *(f"--socket={self.layout.database_socket}", "-e", sql),
            ],
            password=password,
        )

    def start_rabbitmq(self) -> None:
        """Start RabbitMQ, which starts Erlang's port mapper, with a user and vhosts.

        :raises SandboxError: when RabbitMQ does not start
        """
        data = self.layout.data / "rabbitmq"
        data.mkdir(parents=True, exist_ok=True)
        definitions = data / "definitions.json"
        definitions.touch(mode=0o600)
        definitions.write_text(json.dumps(self._definitions()), encoding="utf-8")
        conf = f"{_RABBITMQ_CONF}load_definitions = {definitions}\n"
        (data / "rabbitmq.conf").write_text(conf, encoding="utf-8")
        (data / "plugins").write_text("[].\n", encoding="utf-8")
        ports = self.settings.ports
        env = {
            "HOME": str(data),
            "ERL_EPMD_PORT": str(ports["epmd"]),
            "ERL_EPMD_ADDRESS": ADDRESS,
            "RABBITMQ_NODENAME": f"perfvm{ports['rabbitmq']}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": ADDRESS,
            "RABBITMQ_NODE_PORT": str(ports["rabbitmq"]),
            "RABBITMQ_DIST_PORT": str(ports["rabbitmq-dist"]),
            "RABBITMQ_MNESIA_BASE": str(data / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.layout.logs),
            "RABBITMQ_CONFIG_FILE": str(data / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(data / "plugins"),
            # Ignore the machine's own RabbitMQ settings.
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            # By default Erlang's schedulers spin while they wait.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
                "+sbwt none +sbwtdcpu none +sbwtdio none "
                "-kernel inet_dist_use_interface {127,0,0,1}"
            ),
        }
        self._start("rabbitmq", self.programs["rabbitmq-server"], env=env, cwd=data)

    def _definitions(self) -> dict[str, Any]:
        """Return the user, vhosts and permissions that RabbitMQ creates at start."""
        user = {"name": "openstack", "password": self.settings.password, "tags": ""}
        rights = dict.fromkeys(("configure", "write", "read"), ".*")
        return {
            "users": [user],
            "vhosts": [{"name": vhost} for vhost in VHOSTS],
            "permissions": [
                {"user": user["name"], "vhost": vhost, **rights} for vhost in VHOSTS
            ],
        }
