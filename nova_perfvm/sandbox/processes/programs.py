# SPDX-License-Identifier: Apache-2.0
"""The programs that the sandbox needs from the operating system."""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nova_perfvm.sandbox.processes.errors import SandboxError

# Daemons are not on the PATH of an ordinary user.  RabbitMQ's scripts on the
# PATH insist on root or on their own user; those behind them do not.
PATH: Final = (
    "/usr/lib/rabbitmq/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

# Each with its package in Debian.
PACKAGES: Final = {
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "mariadb": "mariadb-client",
    "mariadb-dump": "mariadb-client",
    "rabbitmq-server": "rabbitmq-server",
    "memcached": "memcached",
}

# Where the programs are, by their names.
Programs = dict[str, str]


def find_programs(names: Iterable[str] = tuple(PACKAGES), path: str = PATH) -> Programs:
    """Return where programs are.

    :param names: some of PACKAGES
    :raises SandboxError: naming all that are missing, and their packages
    """
    found = {name: shutil.which(name, path=path) for name in names}
    _refuse({name: PACKAGES[name] for name, where in found.items() if where is None})
    return {name: where for name, where in found.items() if where}


def check_compiler() -> None:
    """Make sure that uwsgi can be built, which is in no wheel.

    :raises SandboxError: without a C compiler or Python's headers
    """
    missing = {}
    if shutil.which("gcc") is None and shutil.which("cc") is None:
        missing["gcc"] = "gcc"
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists():
        missing[str(header)] = "python3-dev"
    _refuse(missing)


def _refuse(missing: dict[str, str]) -> None:
    if missing:
        packages = " ".join(dict.fromkeys(missing.values()))
        raise SandboxError(
            f"not installed: {', '.join(missing)}; on Debian, as root:\n"
            "  apt-get update && apt-get install -y --no-install-recommends "
            f"{packages}"
        )
