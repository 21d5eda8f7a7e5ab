# SPDX-License-Identifier: Apache-2.0
"""How a server leaves its host, or gets another flavor, as its status lets it.

Nova migrates and resizes what is active or stopped and has no task; what is
paused it migrates live.  Whatever else a server is, it has to be brought there
first: see check_instance_state of each action in nova.compute.api.
"""

from collections.abc import Iterable
from typing import Final

from nova_perfvm.facts.snapshot import Server
from nova_perfvm.microversions import LIVE_MIGRATION

_READY: Final = frozenset({"ACTIVE", "SHUTOFF"})
# What leaves a host in another way than by a migration: in words, and how.
_OTHERWISE: Final = {
    "PAUSED": (
        "live-migrate",
        f"--os-compute-api-version {LIVE_MIGRATION} server migrate --live-migration",
    ),
    "SHELVED": ("offload", "server shelve --offload"),
}
# What makes a server active or stopped: in words, and how.
_FIRST: Final = {
    "ERROR": ("reboot hard", "server reboot --hard"),
    "PAUSED": ("unpause", "server unpause"),
    "RESCUE": ("unrescue", "server unrescue"),
    "SHELVED": ("unshelve", "server unshelve"),
    "SHELVED_OFFLOADED": ("unshelve", "server unshelve"),
    "SOFT_DELETED": ("restore", "server restore"),
    "SUSPENDED": ("resume", "server resume"),
    "VERIFY_RESIZE": ("confirm the resize", "server resize confirm"),
}


def migrate(server_id: str, status: str) -> str:
    """Return the commands after which the scheduler chooses another host."""
    if status in _OTHERWISE:
        _, command = _OTHERWISE[status]
        return f"openstack {command} {server_id}"
    return _prepared(server_id, status, f"openstack server migrate {server_id}")


def resize(server_id: str, status: str, flavor: str) -> str:
    """Return the commands that give a server another flavor.

    :param flavor: name or ID, quoted for a shell
    """
    command = f"openstack server resize --flavor {flavor} {server_id}"
    return _prepared(server_id, status, command)


def _prepared(server_id: str, status: str, command: str) -> str:
    if status not in _FIRST:
        return command
    _, first = _FIRST[status]
    return f"openstack {first} {server_id}\n{command}"


def ready(server: Server) -> bool:
    """Return whether a server leaves its host without anything being done before."""
    return server.task is None and (
        server.status in _READY or server.status in _OTHERWISE
    )


def goes_elsewhere(server: Server) -> bool:
    """Return whether a server needs another host when it leaves its own."""
    return server.status != "SHELVED"


def describe(servers: Iterable[Server]) -> str:
    """Return how servers leave their host, such as ``migrate a (ID), b (ID)``."""
    groups: dict[str, list[str]] = {}
    for server in servers:
        groups.setdefault(_verb(server), []).append(str(server))
    return "; ".join(f"{verb} {', '.join(names)}" for verb, names in groups.items())


def _verb(server: Server) -> str:
    if server.task is None:
        if server.status in _READY:
            return "migrate"
        if server.status in _OTHERWISE:
            return _OTHERWISE[server.status][0]
        if server.status in _FIRST:
            return f"{_FIRST[server.status][0]}, then migrate"
    return "wait until Nova is done, then migrate"
