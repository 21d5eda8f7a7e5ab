# SPDX-License-Identifier: Apache-2.0
"""Find servers with which Nova has been busy too long to finish by itself.

A conductor or a compute that dies takes with it what it was told to do.  Nova
leaves the server as it is, for ever, and with it what Placement gave it.
"""

import datetime as dt
from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.facts.snapshot import Server
from nova_perfvm.findings import Finding

# Not VERIFY_RESIZE, which waits for the user.
_UNDER_WAY: Final = frozenset({"BUILD", "RESIZE", "MIGRATING", "REBUILD"})

# Tasks in which a compute copies a disk, or waits until it has copied others.
# That takes hours; to set the state meanwhile is to clear the task of a copy
# that goes on.
COPYING: Final = frozenset(
    {
        "image_backup",
        "image_pending_upload",
        "image_snapshot",
        "image_snapshot_pending",
        "image_uploading",
        "resize_migrating",
        "shelving_image_pending_upload",
        "shelving_image_uploading",
    }
)

_DELETING: Final = "deleting"

# To set the state says ACTIVE and clears the task.  Servers of these statuses
# are active, or stopped, which a stop repairs; see _STATE_MAP of
# nova.api.openstack.common.
_ACTIVE: Final = frozenset(
    {
        "ACTIVE",
        "HARD_REBOOT",
        "MIGRATING",
        "PASSWORD",
        "REBOOT",
        "REBUILD",
        "RESIZE",
        "SHUTOFF",
    }
)
# What Nova refuses for ever to do with those of others, once they are called so.
_REFUSED: Final = {
    "PAUSED": "unpause it",
    "RESCUE": "unrescue it",
    "REVERT_RESIZE": "confirm or revert its resize",
    "SHELVED": "unshelve it",
    "SHELVED_OFFLOADED": "unshelve it",
    "SOFT_DELETED": "restore it",
    "SUSPENDED": "resume it",
    "VERIFY_RESIZE": "confirm or revert its resize",
}


def check(subject: Subject) -> Iterator[Finding]:
    """List servers with which Nova has been busy too long."""
    snapshot = subject.snapshot
    # Guests that are busy take hours to copy.
    copied = {m.server for m in snapshot.migrations if m.kind == "live-migration"}
    at_work = {host.host for host in snapshot.hosts if host.up}
    copied |= {
        server.id
        for server in snapshot.servers
        if server.task in COPYING and server.host in at_work
    }
    taken = _time(snapshot.taken_at)
    for server in snapshot.servers:
        busy = server.status in _UNDER_WAY or server.task is not None
        since = _since(server)
        if not busy or server.id in copied or taken is None or since is None:
            continue
        minutes = int((taken - since).total_seconds() / 60)
        if minutes >= subject.stuck_after_min:
            yield Finding.of(
                codes.STUCK,
                str(server),
                f"{server.status}, {_doing(server)} for {minutes} minutes"
                + _held(subject, server)
                + _warning(server),
                _remedy(server),
            )


def _since(server: Server) -> dt.datetime | None:
    # Nova says "now" of what was never updated, as a server that waits for its
    # host may not be.
    return _time(server.created if server.status == "BUILD" else server.updated)


def _time(text: str) -> dt.datetime | None:
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _doing(server: Server) -> str:
    where = f"on {server.host}" if server.host else "on no host"
    return f"task {server.task or 'none'} {where}"


def _held(subject: Subject, server: Server) -> str:
    providers = subject.snapshot.providers
    names = [p.name for p in providers if server.id in p.allocations]
    return f"; it holds allocations of {', '.join(names)}" if names else ""


def _warning(server: Server) -> str:
    refused = _REFUSED.get(server.status)
    if refused is None or server.task == _DELETING:
        return ""
    return f"; do not set its state: Nova would never {refused}"


def _remedy(server: Server) -> str:
    """Return what shows whether it gets on after all, then what frees the server."""
    commands = [f"openstack server event list {server.id}"]
    delete = f"openstack server delete {server.id}"
    error = f"openstack server set --state error {server.id}"
    if server.status == "BUILD":
        commands.append(delete)
    elif server.task == _DELETING:
        commands += [error, delete]
    elif server.status == "ERROR":
        # Its state stays; only the task goes.
        commands.append(error)
    elif server.status in _ACTIVE:
        commands.append(f"openstack server set --state active {server.id}")
    return "\n".join(commands)
