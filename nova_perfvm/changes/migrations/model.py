# SPDX-License-Identifier: Apache-2.0
"""A migration, a plan of several, and whether a host takes a server.

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
from nova_perfvm.microversions import COLD_TO_HOST, LIVE_TO_HOST, UNSHELVE_TO_HOST
from nova_perfvm.policy import Policy

# Every migration costs as much as copying so much memory besides the server's.
EACH_MB: Final = 1024
# Migrations of VMs that own CPUs cost more: these were promised not to be disturbed.
PINNED_FACTOR: Final = 2


class MoveError(PerfVMError):
    """A migration that is not possible in a snapshot."""


@dataclass(frozen=True)
class Move:
    """One migration, or one half of it: a server is shelved, and later unshelved.

    :ivar server: its ID
    :ivar source: name of the compute service that it leaves; empty: it is unshelved
    :ivar target: name of the one that it comes to; empty: it is shelved and offloaded
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
        """The kind of migration, or ``shelve`` or ``unshelve``."""
        if not self.target:
            return "shelve"
        if not self.source:
            return "unshelve"
        return "live" if self.live else "cold"

    @property
    def cost_mb(self) -> int:
        """What it costs, as MiB of memory to copy."""
        return cost_mb(self.memory_mb, pinned=self.pinned)


@dataclass(frozen=True)
class MigrationPlan:
    """Migrations in their order, and what they achieve.

    :ivar moves: a server may move twice, by way of a spare host
    :ivar gained: what the migrations win: VMs of the flavor that find room, free
        slots, or servers that leave the host
    :ivar wanted: how many were asked for
    :ivar measure: returns how much of that a later cloud has gained
    :ivar reasons: why the plan is not complete
    :ivar notes: what else an operator should know, such as what was not seen
    :ivar after: the cloud after the migrations
    """

    moves: tuple[Move, ...]
    gained: int
    wanted: int
    measure: Callable[[Snapshot], int] = field(repr=False, compare=False)
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    after: Snapshot = field(default=Snapshot(""), repr=False, compare=False)

    @property
    def complete(self) -> bool:
        """Return whether all that was wanted is gained."""
        return self.gained >= self.wanted and not self.reasons

    @property
    def migrations(self) -> tuple[Move, ...]:
        """The moves of servers that are not shelved."""
        return tuple(move for move in self.moves if move.source and move.target)

    @property
    def memory_mb(self) -> int:
        """Memory of the servers, counted once for each migration."""
        return sum(move.memory_mb for move in self.migrations)

    @property
    def live(self) -> int:
        """The number of live migrations."""
        return sum(move.live for move in self.migrations)

    @property
    def cold(self) -> int:
        """The number of cold migrations."""
        return len(self.migrations) - self.live

    @property
    def pinned(self) -> int:
        """The number of migrations of servers that own CPUs."""
        return sum(move.pinned for move in self.migrations)


def cost_mb(memory_mb: int, *, pinned: bool) -> int:
    """Return what one migration costs, as MiB of memory to copy."""
    return (memory_mb + EACH_MB) * (PINNED_FACTOR if pinned else 1)


def request_to_move(
    snapshot: Snapshot, server: Server, *, any_zone: bool = False
) -> Request:
    """Return what a server asks for when it moves.

    It keeps to the availability zone that Nova binds it to, wherever it is, and else to
    the one that it is in.

    :param any_zone: those that Nova does not bind to one may go to any; where nobody
        tells, all
    :raises RequestError: when nova-api would refuse its flavor and image today
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
    :param settings: those of nova-scheduler; None for what the policy needs
    :param any_zone: as :func:`request_to_move` has it
    :raises MoveError: when there is no such host
    :raises RequestError: when nova-api would refuse its flavor and image today
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
    """Return the commands of one move, which wait until it is over.

    nova-scheduler checks the host; nothing is forced.
    """
    server, host = quote(move.server), quote(move.target)
    if move.how == "shelve":
        return f"openstack server shelve --offload --wait {server}"
    if move.how == "unshelve":
        return (
            f"openstack --os-compute-api-version {UNSHELVE_TO_HOST} server unshelve "
            f"--host {host} --wait {server}"
        )
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
