# SPDX-License-Identifier: Apache-2.0
"""A migration, a plan of several migrations, and whether a host takes a server.

The rules and Placement's arithmetic decide whether a host takes a server, as for every
other request; see :mod:`nova_perfvm.diagnose.verdicts`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Final

from nova_perfvm.diagnose import moves as ways
from nova_perfvm.diagnose.arrivals import shares
from nova_perfvm.diagnose.nova_filters.numa import no_cells
from nova_perfvm.diagnose.verdicts import (
    HostVerdict,
    SchedulerSettings,
    judge,
    settings_for,
)
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.host_view import views_of
from nova_perfvm.facts.snapshot import Server, Snapshot
from nova_perfvm.microversions import COLD_TO_HOST, LIVE_TO_HOST
from nova_perfvm.policy import Policy
from nova_perfvm.printable import number_of

# MiB of memory that each migration costs besides the server's memory.
EACH_MB: Final = 1024
# Migrations of pinned VMs cost more: they were promised undisturbed CPUs.
PINNED_FACTOR: Final = 2


class MoveError(PerfVMError):
    """A migration that is not possible in a snapshot."""


@dataclass(frozen=True)
class Move:
    """One migration.

    :ivar server: the server's ID
    :ivar source: name of the compute service that it leaves
    :ivar target: name of the compute service that it comes to
    :ivar live: whether the server runs meanwhile; otherwise it is stopped, moved and
        started again
    :ivar pinned: whether the server owns CPUs
    """

    server: str
    name: str
    source: str
    target: str
    live: bool
    memory_mb: int
    pinned: bool

    @property
    def how(self) -> str:
        """The kind of migration: ``live`` or ``cold``."""
        return "live" if self.live else "cold"

    @property
    def cost_mb(self) -> int:
        """The cost of the move, as MiB of memory to copy."""
        return cost_mb(self.memory_mb, pinned=self.pinned)


@dataclass(frozen=True)
class MigrationPlan:
    """Migrations in their order, and the result of them.

    :ivar moves: a server may move twice, by way of a spare host
    :ivar gained: the result: VMs of the flavor that find room, free slots, or servers
        that leave the host
    :ivar wanted: the desired result, in the same unit
    :ivar measure: returns the part of the result that a later cloud has reached
    :ivar reasons: why the plan is not complete
    :ivar notes: further remarks for an operator, such as data that was not seen
    :ivar left_out: further migrations, which do not end within a window
    :ivar after: the cloud after the migrations of a drain; empty for other goals
    """

    moves: tuple[Move, ...]
    gained: int
    wanted: int
    measure: Callable[[Snapshot], int] = field(repr=False, compare=False)
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[Move, ...] = ()
    after: Snapshot = field(default=Snapshot(""), repr=False, compare=False)

    @property
    def complete(self) -> bool:
        """Return whether the plan reaches the desired result."""
        return self.gained >= self.wanted and not self.reasons

    @property
    def memory_mb(self) -> int:
        """Memory of the servers, counted once for each migration."""
        return sum(move.memory_mb for move in self.moves)

    @property
    def live(self) -> int:
        """The number of live migrations."""
        return sum(move.live for move in self.moves)

    @property
    def cold(self) -> int:
        """The number of cold migrations."""
        return len(self.moves) - self.live

    @property
    def pinned(self) -> int:
        """The number of migrations of servers that own CPUs."""
        return sum(move.pinned for move in self.moves)

    def summary(self, what: str) -> str:
        """Return a line with the numbers of migrations, and the plan's gain.

        :param what: the gain, in words
        """
        if not self.moves:
            return "no migration is needed" if self.complete else "no plan"
        return (
            f"{number_of(len(self.moves), 'migration')}, {self.live} live and "
            f"{self.cold} cold, {self.pinned} of servers that own CPUs, "
            f"{self.memory_mb} MiB of memory: {what}"
        )


def cost_mb(memory_mb: int, *, pinned: bool) -> int:
    return (memory_mb + EACH_MB) * (PINNED_FACTOR if pinned else 1)


def request_to_move(
    snapshot: Snapshot, server: Server, *, any_zone: bool = False
) -> Request:
    """Return the request of a server that moves.

    The server stays in the availability zone that Nova binds it to, or else in the zone
    where it is now.

    :param any_zone: whether servers that Nova binds to no zone may go to any zone; if
        the binding is unknown, all servers may
    :raises RequestError: when nova-api would refuse the server's flavor and image today
    """
    request = ways.request_of(snapshot, server)
    zone = server.bound_zone or ("" if any_zone else server.availability_zone)
    return replace(request, availability_zone=zone)


def allows(
    policy: Policy,
    snapshot: Snapshot,
    server: Server,
    host: str,
    *,
    settings: SchedulerSettings | None = None,
    any_zone: bool = False,
) -> HostVerdict:
    """Return the verdict on moving a server to a host of the cloud as it is now.

    The server still holds its resources on its present host, as it does while Nova
    moves it.

    :param host: name of the compute service
    :param settings: those of nova-scheduler; None for the settings that the policy
        needs
    :param any_zone: see :func:`request_to_move`
    :raises MoveError: when the host does not exist
    :raises RequestError: when nova-api would refuse the server's flavor and image today
    """
    view = next(iter(views_of(snapshot, {host})), None)
    if view is None:
        raise MoveError(f"there is no compute host {host!r} in the snapshot")
    request = request_to_move(snapshot, server, any_zone=any_zone)
    found = judge(policy, request, view, settings or settings_for(policy).strict)
    if found.accepted and shares(policy, request, view) is None:
        return replace(found, filters=((no_cells(request.facts),),))
    return found


def command(move: Move) -> str:
    """Return the shell commands of one move; a cold one ends with its confirmation.

    The first command waits until the server has moved.  nova-scheduler checks the host.
    """
    server, host = quote(move.server), quote(move.target)
    if move.live:
        return (
            f"openstack --os-compute-api-version {LIVE_TO_HOST} server migrate "
            f"--live-migration --host {host} --wait {server}"
        )
    return (
        f"openstack --os-compute-api-version {COLD_TO_HOST} server migrate "
        f"--host {host} --wait {server}\n"
        f"openstack server migration confirm {server}"
    )
