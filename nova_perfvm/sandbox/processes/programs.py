# SPDX-License-Identifier: Apache-2.0
"""The programs that the sandbox needs from the operating system."""

from __future__ import annotations

import os
import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nova_perfvm.sandbox.processes.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterable

# Daemons are not on the PATH of an ordinary user.  RabbitMQ's scripts on the
# PATH insist on root or on their own user; those behind them do not.
DIRECTORIES: Final = (
    "/usr/lib/rabbitmq/bin",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)

# Each with its package in Debian.
PACKAGES: Final = {
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "mariadb": "mariadb-client",
    "mariadb-dump": "mariadb-client",
    "rabbitmq-server": "rabbitmq-server",
    "rabbitmqctl": "rabbitmq-server",
    "epmd": "erlang-base",
    "memcached": "memcached",
}


class MissingProgramsError(SandboxError):
    """Programs that are not installed.

    :ivar missing: their names
    :ivar packages: Debian's packages that have them
    """

    def __init__(self, missing: Iterable[str], packages: Iterable[str]) -> None:
        """Return what is missing and how to install it on Debian."""
        self.missing = tuple(missing)
        self.packages = tuple(dict.fromkeys(packages))
        super().__init__(
            f"not installed: {', '.join(self.missing)}; on Debian, as root:\n"
            "  apt-get update && apt-get install -y --no-install-recommends "
            f"{' '.join(self.packages)}"
        )


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the programs are."""

    mariadbd: str
    mariadb_install_db: str
    mariadb: str
    mariadb_dump: str
    rabbitmq_server: str
    rabbitmqctl: str
    epmd: str
    memcached: str


def find_programs(directories: Iterable[str] = DIRECTORIES) -> Programs:
    """Return where the servers are.

    :raises MissingProgramsError: naming all that are missing
    """
    return Programs(**find(PACKAGES, directories))


def find(
    names: Iterable[str], directories: Iterable[str] = DIRECTORIES
) -> dict[str, str]:
    """Return where some of PACKAGES' programs are, by the field of Programs.

    :raises MissingProgramsError: naming all that are missing
    """
    path = os.pathsep.join(directories)
    found = {name: shutil.which(name, path=path) for name in names}
    missing = [name for name, where in found.items() if where is None]
    if missing:
        raise MissingProgramsError(missing, [PACKAGES[name] for name in missing])
    return {n.replace("-", "_"): where for n, where in found.items() if where}


def check_compiler() -> None:
    """Make sure that uwsgi can be built, which is in no wheel.

    :raises MissingProgramsError: without a C compiler or Python's headers
    """
    missing = {}
    if shutil.which("gcc") is None and shutil.which("cc") is None:
        missing["gcc"] = "gcc"
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        missing[str(header)] = "python3-dev"
    if missing:
        raise MissingProgramsError(missing, missing.values())
