# SPDX-License-Identifier: Apache-2.0
"""Free TCP ports of 127.0.0.1, and variables that bypass proxies for this address."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, Mapping
from typing import Final

from nova_perfvm.sandbox.processes.errors import SandboxError

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

# Below Linux's ports for outgoing connections, any of which may be in use later.
_FIRST, _LAST, _STEP = 20000, 32000, 20


def choose_ports() -> dict[str, int]:
    """Return a free port for each name of NAMES, all in one block.

    Blocks are tried in random order, so that two sandboxes that start at the same time
    hardly ever choose the same block.

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
        f"{ADDRESS}: stop programs that listen there"
    )


def taken(ports: Iterable[int]) -> list[int]:
    return [port for port in ports if not _is_free(port)]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Lingering connections (TIME_WAIT) of an earlier run do not occupy the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def without_proxies(environ: Mapping[str, str]) -> dict[str, str]:
    """Return no_proxy and NO_PROXY with this machine added.

    :param environ: the present environment, whose exemptions stay
    """
    # Some programs read the lower-case variable, some the upper-case one.
    names = ("no_proxy", "NO_PROXY")
    given = [environ[name] for name in names if environ.get(name)]
    return dict.fromkeys(names, ",".join(dict.fromkeys([*given, ADDRESS, "localhost"])))
