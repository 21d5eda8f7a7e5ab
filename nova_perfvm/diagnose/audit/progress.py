# SPDX-License-Identifier: Apache-2.0
"""Find servers that Nova will not finish by itself: stuck ones, and builds cut off.

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
# To set the state says ACTIVE and clears the task.  Servers of these statuses
# are active, or stopped, which a stop repairs; see _STATE_MAP of
# nova.api.openstack.common.  Of others Nova would refuse for ever what ends
# their state, such as to unpause them.
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
# What Nova notes as the fault where nova-compute got no answer: of exceptions
# that are not its own it shows the class alone.
_NO_ANSWER: Final = frozenset(
    {"MessageDeliveryFailure", "MessagingTimeout", "RemoteError"}
)


def check(subject: Subject) -> Iterator[Finding]:
    """List servers with which Nova has been busy too long."""
    snapshot = subject.snapshot
    # Guests that are busy take hours to copy.
    copied = {m.server for m in snapshot.migrations if m.kind == "live-migration"}
    at_work = {host.host for host in snapshot.hosts if host.up}
    taken = _time(snapshot.taken_at)
    for server in snapshot.servers:
        if not (server.status in _UNDER_WAY or server.task):
            continue
        if server.id in copied or (copies(server.task) and server.host in at_work):
            continue
        # Nova says "now" of what was never updated, as a server that waits for its
        # host may not be.
        since = _time(server.created if server.status == "BUILD" else server.updated)
        if taken is None or since is None:
            continue
        minutes = int((taken - since).total_seconds() / 60)
        if minutes >= subject.stuck_after_min:
            yield Finding.of(
                codes.STUCK,
                str(server),
                f"{server.status}, task {server.task or 'none'} on "
                f"{server.host or 'no host'} for {minutes} minutes",
                _remedy(server),
            )


def copies(task: str | None) -> bool:
    """Return whether in a task a compute copies a disk, or waits for such copies.

    That takes hours; to set the state meanwhile is to clear the task of a copy
    that goes on.
    """
    return task is not None and ("image_" in task or task == "resize_migrating")


def _time(text: str) -> dt.datetime | None:
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _remedy(server: Server) -> str:
    """Return what shows whether it gets on after all, then what frees the server."""
    commands = [f"openstack server event list {server.id}"]
    state = ""
    if server.task == "deleting" or server.status == "ERROR":
        # An error stays one; only the task goes.
        state = "error"
    elif server.status in _ACTIVE:
        state = "active"
    if state:
        commands.append(f"openstack server set --state {state} {server.id}")
    if server.task == "deleting" or server.status == "BUILD":
        commands.append(f"openstack server delete {server.id}")
    return "\n".join(commands)


def check_builds(subject: Subject) -> Iterator[Finding]:
    """List servers in ERROR on no host whose guests may run nevertheless.

    nova-compute starts the guest and then asks nova-conductor to note it.  If no
    answer comes, it gives up the server, its host and its allocation, but not the
    guest (``_do_build_and_run_instance`` of nova/compute/manager.py).
    """
    for server in subject.snapshot.servers:
        cut_off = server.status == "ERROR" and server.fault in _NO_ANSWER
        if cut_off and server.host is None:
            yield Finding.of(
                codes.BUILD_CUT_OFF,
                str(server),
                f"it is in ERROR by {server.fault} and on no host: the guest may have "
                "been started, and runs beside what Nova knows of",
                f"openstack server event list {server.id}\n"
                f"openstack server delete {server.id}",
            )
