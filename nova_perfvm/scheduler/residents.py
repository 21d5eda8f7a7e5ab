# SPDX-License-Identifier: Apache-2.0
"""Look up the VMs that are on a host, or may come back to it, in Nova's databases.

A host's own figures lack a VM that has just moved there, until nova-compute's next
periodic task, and a VM that has moved away but may come back.  Where Placement does not
keep classes apart, VMs of two classes could meet because of that.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from nova import context as nova_context
from nova import objects
from nova.compute import vm_states
from nova.scheduler.host_manager import HostState
from oslo_db import exception as db_exception
from oslo_utils import timeutils

from nova_perfvm.facts.migration_states import REVERTED, UNFINISHED
from nova_perfvm.scheduler.unreadable import name_of

# UUID of a server, and the NUMA topology that counts on the host: the server's own, or
# the old or new one of its move.
_Stay = tuple[str, Literal["own", "old", "new"]]
# The old records of reverted moves are many; a compute that takes longer to fetch a
# message is down.
_LONGEST_REVERT: Final = dt.timedelta(hours=1)


class Residents:
    """The VMs on the hosts of one request, looked up on demand."""

    def __init__(self, hosts: Iterable[HostState]) -> None:
        """Start without queries; `hosts` are all hosts of the request."""
        self._hosts = hosts
        self._failed: dict[str, db_exception.DBError] = {}
        self._contexts: dict[str, nova_context.RequestContext] = {}
        self._stays: dict[str, Mapping[str, set[_Stay]]] = {}

    @functools.cached_property
    def _cells(self) -> Mapping[str, str]:
        """The UUID of the Nova cell of each host; empty for a host without one."""
        return {name_of(h)[0]: getattr(h, "cell_uuid", "") for h in self._hosts}

    def unpinned(self, host: str, pinned: int) -> int:
        """Count the unpinned VMs on a host, VMs in unfinished moves included.

        Costs three queries of the Nova cell's database for all of its hosts, and a
        fourth for a host with more VMs than `pinned`.

        :param pinned: number of VMs that own the host's pinned CPUs
        :raises DBError: the database fails; raised again for other hosts of the cell
        """
        cell = self._cells[host]
        if cell in self._failed:
            # Do not wait for the same timeout on each host.
            raise self._failed[cell]
        try:
            return self._count_unpinned(cell, host, pinned)
        except db_exception.DBError as exc:
            self._failed[cell] = exc
            raise

    def _count_unpinned(self, cell: str, host: str, pinned: int) -> int:
        if cell not in self._stays:
            self._stays[cell] = self._look(cell)
        stays = self._stays[cell].get(host, ())
        if len(stays) <= pinned:
            return 0
        servers = objects.InstanceList.get_by_filters(
            self._contexts[cell],
            {"uuid": [uuid for uuid, _ in stays], "deleted": False},
            expected_attrs=["numa_topology", "migration_context"],
        )
        found = {server.uuid: server for server in servers}
        return len(
            {
                uuid
                for uuid, which in stays
                if uuid in found and _is_unpinned_on(found[uuid], host, which)
            }
        )

    def _look(self, cell: str) -> Mapping[str, set[_Stay]]:
        """Return the servers on, moving to or moving from each host of a Nova cell.

        :param cell: UUID of the Nova cell
        """
        admin = nova_context.get_admin_context()
        mapping = objects.CellMapping.get_by_uuid(admin, cell)
        with nova_context.target_cell(admin, mapping) as context:
            self._contexts[cell] = context
        # Read moves before hosts: a server whose move ends in between is then found on
        # its new host.
        moves = list(_moves(context))
        hosts = [host for host, of in self._cells.items() if of == cell]
        listed = objects.InstanceList.get_uuids_by_hosts(context, hosts)
        stays: dict[str, set[_Stay]] = {
            host: {(uuid, "own") for uuid in listed[host]} for host in hosts
        }
        for host, (uuid, which) in moves:
            if host in stays:
                # Between resize_instance() and finish_resize() of
                # nova.compute.manager a server is on its new host and has the topology
                # of the old one.
                stays[host].discard((uuid, "own"))
                stays[host].add((uuid, which))
        return stays


def _moves(context: nova_context.RequestContext) -> Iterator[tuple[str, _Stay]]:
    """Yield the hosts of servers that move, with the topology that counts there."""
    unfinished = {"status": list(UNFINISHED)}
    for move in objects.MigrationList.get_by_filters(context, unfinished):
        yield move.source_compute, (move.instance_uuid, "old")
        yield move.dest_compute, (move.instance_uuid, "new")
    since = timeutils.utcnow() - _LONGEST_REVERT
    reverted = {"status": [REVERTED], "changes-since": since}
    for move in objects.MigrationList.get_by_filters(context, reverted):
        yield move.source_compute, (move.instance_uuid, "old")


def _is_unpinned_on(server: Any, host: str, which: str) -> bool:
    """Return whether a server uses, or may soon use, unpinned CPUs of a host.

    If a compute dies during a move, the move's record stays unfinished for ever.  So
    the server's own state decides, as in Nova's resource tracker.

    :param which: the NUMA topology that counts on the host while the server moves
    """
    topology = server.numa_topology
    if server.task_state is not None or server.vm_state == vm_states.RESIZED:
        if which != "own" and server.migration_context is not None:
            topology = getattr(server.migration_context, f"{which}_numa_topology")
    elif server.host != host:
        return False
    return topology is None or not any(cell.pcpuset for cell in topology.cells)
