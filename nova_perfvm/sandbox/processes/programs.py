# SPDX-License-Identifier: Apache-2.0
"""The programs that the sandbox needs from the operating system."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from typing import Final

from nova_perfvm.sandbox.processes.errors import SandboxError

# Daemons are not on the PATH of an ordinary user.  RabbitMQ's scripts on the usual PATH
# insist on root or on their own user; the scripts in /usr/lib/rabbitmq/bin do not.
PATH: Final = (
    "/usr/lib/rabbitmq/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)
PROGRAMS: Final = (
    "mariadbd",
    "mariadb-install-db",
    "mariadb",
    "mariadb-dump",
    "rabbitmq-server",
    "memcached",
)
# Debian's packages, with a compiler, as PyPI has no wheel of uwsgi.
PACKAGES: Final = "mariadb-server rabbitmq-server memcached gcc python3-dev"

# Paths of programs by name.
Programs = dict[str, str]


def find_programs(names: Iterable[str] = PROGRAMS, path: str = PATH) -> Programs:
    """Return the paths of programs.

    :raises SandboxError: names all missing programs, and their packages
    """
    found = {name: shutil.which(name, path=path) for name in names}
    missing = [name for name, where in found.items() if where is None]
    if missing:
        raise SandboxError(
            f"not installed: {', '.join(missing)}; on Debian, as root:\n"
            "  apt-get update && apt-get install -y --no-install-recommends "
            f"{PACKAGES}"
        )
    return {name: where for name, where in found.items() if where}
