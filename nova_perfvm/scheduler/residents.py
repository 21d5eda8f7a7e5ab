# SPDX-License-Identifier: Apache-2.0
"""Look up the VMs that are on a host, or may come back to it, in Nova's databases.

A host's own figures lack a VM that has just moved there, until nova-compute's next
periodic task, and a VM that has moved away but may come back.  Where Placement does not
keep classes apart, VMs of two classes could meet because of that.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from nova import context as nova_context
from nova import objects
from nova.compute import vm_states
from nova.scheduler.host_manager import HostState
from oslo_db import exception as db_exception

from nova_perfvm.facts.migration_states import UNFINISHED
from nova_perfvm.scheduler.unreadable import name_of

# UUID of a server, and the NUMA topology that counts on the host: the server's own, or
# the old or new one of its move.
_Stay = tuple[str, Literal["own", "old", "new"]]


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

        Costs two queries of the Nova cell's database for all of its hosts, and a third
        for a host with more VMs than `pinned`.

        :param pinned: number of VMs that own the host's pinned CPUs
        :raises DBError: the database fails; raised again for other hosts of the cell
        """
        cell = self._cells[host]
        if cell in self._failed:
            # Do not wait for the same timeout on each host.
            raise self._failed[cell]
        try:
            return self._count(cell, host, pinned)
        except db_exception.DBError as exc:
            self._failed[cell] = exc
            raise

    def _count(self, cell: str, host: str, pinned: int) -> int:
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
        return sum(
            uuid in found
            and _is_there(found[uuid], host)
            and not _pinned(found[uuid], which)
            for uuid, which in stays
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
        moves = objects.MigrationList.get_by_filters(
            context, {"status": list(UNFINISHED)}
        )
        hosts = [host for host, of in self._cells.items() if of == cell]
        listed = objects.InstanceList.get_uuids_by_hosts(context, hosts)
        stays: dict[str, set[_Stay]] = {
            host: {(uuid, "own") for uuid in listed[host]} for host in hosts
        }
        for move in moves:
            uuid = move.instance_uuid
            for host, there in (
                (move.source_compute, (uuid, "old")),
                (move.dest_compute, (uuid, "new")),
            ):
                if host in stays and (uuid, "own") not in stays[host]:
                    stays[host].add(there)
        return stays


def _is_there(server: Any, host: str) -> bool:
    """Return whether a server with a record for the host is there, or is still moving.

    If a compute dies during a move, the move's record stays unfinished for ever.  So
    the server's own state decides, as in Nova's resource tracker.
    """
    moves = server.task_state is not None or server.vm_state == vm_states.RESIZED
    return moves or server.host == host


def _pinned(server: Any, which: str) -> bool:
    """Return whether the NUMA topology `which` of a server has pinned CPUs."""
    topology = server.numa_topology
    if which != "own" and server.migration_context is not None:
        # An unfinished resize: the topology differs between the two hosts.
        topology = getattr(server.migration_context, f"{which}_numa_topology")
    return topology is not None and any(cell.pcpuset for cell in topology.cells)
