# SPDX-License-Identifier: Apache-2.0
"""The programs that the sandbox needs from the operating system."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nova_perfvm.sandbox.processes.errors import SandboxError

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
        """Keep what is missing; say how to install it on Debian."""
        self.missing = tuple(missing)
        self.packages = tuple(dict.fromkeys(packages))
        super().__init__(
            f"not installed: {', '.join(self.missing)}; on Debian, as root:\n"
            "  apt-get update && apt-get install -y --no-install-recommends "
            f"{' '.join(self.packages)}"
        )


# Where the programs are, by their names.
Programs = dict[str, str]


def find_programs(
    names: Iterable[str] = tuple(PACKAGES), directories: Iterable[str] = DIRECTORIES
) -> Programs:
    """Return where programs are.

    :param names: some of PACKAGES
    :raises MissingProgramsError: naming all that are missing
    """
    path = os.pathsep.join(directories)
    found = {name: shutil.which(name, path=path) for name in names}
    missing = [name for name, where in found.items() if where is None]
    if missing:
        raise MissingProgramsError(missing, [PACKAGES[name] for name in missing])
    return {name: where for name, where in found.items() if where}


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
