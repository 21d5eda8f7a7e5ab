# SPDX-License-Identifier: Apache-2.0
"""Which VMs are on a host, or may come back to it, as Nova's databases have it now.

A host's own figures leave VMs out: one that was moved there, until nova-compute's
next periodic task, and one that was moved away and may come back.  Where Placement
keeps no class from another, these would let both meet.
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

# A server, and which of its NUMA topologies counts on the host: its own, or that of
# before its move, or that of after it.
_Stay = tuple[str, Literal["own", "old", "new"]]


class Residents:
    """The VMs on the hosts of one request; nothing is asked before it matters."""

    def __init__(self, hosts: Iterable[HostState]) -> None:
        """Know nothing yet of these hosts."""
        self._hosts = hosts
        self._failed: dict[str, db_exception.DBError] = {}
        self._contexts: dict[str, nova_context.RequestContext] = {}
        self._stays: dict[str, Mapping[str, set[_Stay]]] = {}

    @functools.cached_property
    def _cells(self) -> Mapping[str, str]:
        """The cell of each host; an odd one is refused when it is judged."""
        return {name_of(h)[0]: getattr(h, "cell_uuid", "") for h in self._hosts}

    def unpinned(self, host: str, pinned: int) -> int:
        """Count the VMs on a host that own no CPUs, its unfinished moves included.

        It takes two queries of a cell's database, for all of its hosts, and one
        more where a host has more VMs than are known to be pinned.

        :param pinned: VMs that the host's pins are
        :raises DBError: when the database fails; for its other hosts at once
        """
        cell = self._cells[host]
        if cell in self._failed:
            # Each would wait for it as long.
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
        """Return the servers of each of a cell's hosts."""
        admin = nova_context.get_admin_context()
        mapping = objects.CellMapping.get_by_uuid(admin, cell)
        with nova_context.target_cell(admin, mapping) as context:
            self._contexts[cell] = context
        # Before the hosts: a move that ends meanwhile is seen on its new one.
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
    """Return whether a server is on a host, or is being moved to it or from it.

    The record of a move stays unfinished for ever where a compute died in the middle
    of it.  Nova's resource tracker looks at the server for that, too.
    """
    moves = server.task_state is not None or server.vm_state == vm_states.RESIZED
    return moves or server.host == host


def _pinned(server: Any, which: str) -> bool:
    """Return whether a server owns CPUs, by one of its NUMA topologies."""
    topology = server.numa_topology
    if which != "own" and server.migration_context is not None:
        # A resize changes it, and is not over.
        topology = getattr(server.migration_context, f"{which}_numa_topology")
    return topology is not None and any(cell.pcpuset for cell in topology.cells)
