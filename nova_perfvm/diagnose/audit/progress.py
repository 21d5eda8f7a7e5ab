# SPDX-License-Identifier: Apache-2.0
"""Find servers that Nova will not finish by itself: stuck ones, and builds cut off.

If a conductor or a compute dies, its tasks are lost.  Nova then leaves the server in
its state for ever, and keeps the server's allocation.
"""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.facts.snapshot import Server, time_of
from nova_perfvm.findings import Finding

# VERIFY_RESIZE is not included: that status waits for the user.
_UNDER_WAY: Final = frozenset({"BUILD", "RESIZE", "MIGRATING", "REBUILD"})
# nova-conductor creates the record of a live migration with this status, before it asks
# nova-compute (_live_migrate of nova/conductor/manager.py): nothing is copied yet.
_ACCEPTED: Final = "accepted"
# Setting the state to active also clears the task.  Servers of these statuses are
# active, or stopped, which a stop corrects; see _STATE_MAP of
# nova.api.openstack.common.  A server of another status would be marked active wrongly:
# Nova would then refuse the action that ends the status, such as unpause.
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
# Faults that Nova notes when nova-compute got no answer: of exceptions that are not
# Nova's own, only the class is shown.
_NO_ANSWER: Final = frozenset(
    {"MessageDeliveryFailure", "MessagingTimeout", "RemoteError"}
)


def check(subject: Subject) -> Iterator[Finding]:
    """List servers with which Nova has been busy for too long."""
    snapshot = subject.snapshot
    # Copying the memory of a busy guest takes hours.
    copied = {
        migration.server
        for migration in snapshot.migrations
        if migration.kind == "live-migration" and migration.status != _ACCEPTED
    }
    at_work = {host.host for host in snapshot.hosts if host.up}
    taken = time_of(snapshot.taken_at)
    for server in snapshot.servers:
        if not (server.status in _UNDER_WAY or server.task):
            continue
        # A server that is live-migrated is on its source until the copy is complete.
        copying = server.id in copied or copies(server.task)
        if copying and server.host in at_work:
            continue
        # Nova shows the current time for a server that was never updated, such as one
        # that waits for its host: for builds the creation time is used.
        since = time_of(server.created if server.status == "BUILD" else server.updated)
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
    """Return whether in this task nova-compute copies a disk, or waits for a copy.

    A copy takes hours.  Setting the server's state meanwhile would clear the task of a
    copy that still runs.
    """
    return task is not None and ("image_" in task or task == "resize_migrating")


def _remedy(server: Server) -> str:
    """Return commands that show whether the server progresses, then free the server."""
    commands = [f"openstack server event list {server.id}"]
    state = ""
    if server.task == "deleting" or server.status == "ERROR":
        # The server stays in ERROR; only its task is cleared.
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

    nova-compute starts the guest and then asks nova-conductor to save the server.  If
    no answer comes, it gives up the server, its host and its allocation, but not the
    guest (``_do_build_and_run_instance`` of nova/compute/manager.py).
    """
    for server in subject.snapshot.servers:
        cut_off = server.status == "ERROR" and server.fault in _NO_ANSWER
        if cut_off and server.host is None:
            yield Finding.of(
                codes.BUILD_CUT_OFF,
                str(server),
                f"it is in ERROR by {server.fault} and on no host: the guest may have "
                "been started, and then runs without Nova's knowledge",
                f"openstack server event list {server.id}\n"
                f"openstack server delete {server.id}",
            )
