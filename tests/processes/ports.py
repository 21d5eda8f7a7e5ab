# SPDX-License-Identifier: Apache-2.0
"""127.0.0.1: its TCP ports that nobody uses, and no proxies for it."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, Mapping
from typing import Final

from tests.processes.errors import SandboxError

ADDRESS: Final = "127.0.0.1"
NAMES: Final = (
    "mariadb",
    "rabbitmq",
    "rabbitmq-dist",
    "epmd",
    "memcached",
    "keystone",
    "placement",
    "glance",
    "neutron",
    "nova-api",
    "cinder",
)

# Below what Linux gives to outgoing connections, which come and go.
_FIRST, _LAST, _STEP = 20000, 32000, 20


def choose_ports() -> dict[str, int]:
    """Return a free port for each name, all in one block.

    Blocks are tried in random order: two sandboxes that start at the same time
    hardly ever meet.

    :raises SandboxError: when no block is free
    """
    blocks = list(range(_FIRST, _LAST, _STEP))
    random.shuffle(blocks)
    for first in blocks:
        ports = {name: first + offset for offset, name in enumerate(NAMES)}
        if not taken(ports.values()):
            return ports
    raise SandboxError(
        f"no {len(NAMES)} free ports in a row between {_FIRST} and {_LAST} on "
        f"{ADDRESS}: stop something that listens there"
    )


def taken(ports: Iterable[int]) -> list[int]:
    """Return those of the ports that somebody listens on."""
    return [port for port in ports if not _is_free(port)]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Connections of an earlier run that linger are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def without_proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that exempt this machine from proxies, too.

    :param environ: what they are now; whatever they exempt stays exempted
    """
    # Some programs read the one, some the other.
    names = ("no_proxy", "NO_PROXY")
    given = [environ[name] for name in names if environ.get(name)]
    return dict.fromkeys(names, ",".join(dict.fromkeys([*given, ADDRESS, "localhost"])))
