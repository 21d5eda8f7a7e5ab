# SPDX-License-Identifier: Apache-2.0
"""Divide a host's CPUs into dedicated, shared, housekeeping and idle CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nova_perfvm.generate.hosts.request import HostRequest
from nova_perfvm.generate.hosts.topology import Node
from nova_perfvm.policy import VMClass


@dataclass(frozen=True, slots=True)
class CPUSets:
    """A host's CPUs, each in one set.

    :ivar dedicated: [compute]cpu_dedicated_set; empty: not set
    :ivar shared: [compute]cpu_shared_set; empty: not set
    :ivar either: CPUs of an elastic host, for pinned VMs or for VMs with shared CPUs
    :ivar housekeeping: all threads of the cores reserved for the host
    :ivar idle: sibling threads of pinnable CPUs, unused so that each vCPU has a whole
        core
    """

    dedicated: frozenset[int] = frozenset()
    shared: frozenset[int] = frozenset()
    either: frozenset[int] = frozenset()
    housekeeping: frozenset[int] = frozenset()
    idle: frozenset[int] = frozenset()

    @property
    def pinnable(self) -> frozenset[int]:
        return self.dedicated | self.either

    @property
    def pin_set(self) -> frozenset[int]:
        """[DEFAULT]vcpu_pin_set: needed only if an elastic host leaves CPUs out."""
        return self.either if self.housekeeping or self.idle else frozenset()

    def cell(self, node: Node) -> dict[str, Any]:
        """Return arguments of a NUMA node's cell: its CPUs for VMs, and their cores."""
        usable = self.pinnable | self.shared
        cores = (frozenset(core) & usable for core in node.cores)
        return {
            "id": node.id,
            "cpuset": node.cpus & (self.shared | self.either),
            "pcpuset": node.cpus & self.pinnable,
            "siblings": tuple(threads for threads in cores if threads),
        }


def divide_cpus(request: HostRequest, pinned: Sequence[VMClass]) -> CPUSets:
    """Divide a host's CPUs for the requested mode.

    The first cores of each node are reserved for the host, since Linux by default puts
    its own work on CPU 0 and on the first CPU of a node.

    :param pinned: the pinned classes of the host; all have the same ``smt``
    """
    nodes, reserve = request.topology.nodes, request.reserve
    owned, shared = nodes, nodes[:0]
    if request.mode == "shared":
        owned, shared = shared, owned
    elif request.mode == "mixed":
        owned, shared = (
            nodes[: -request.shared_nodes],
            nodes[-request.shared_nodes :],
        )
    whole = _cpus(owned, slice(reserve, None))
    one_thread = any(vm_class.smt == "cores" for vm_class in pinned)
    pinnable = _cpus(owned, slice(reserve, None), 1) if one_thread else whole
    elastic = request.mode == "elastic"
    return CPUSets(
        dedicated=frozenset() if elastic else pinnable,
        shared=_cpus(shared, slice(reserve, None)),
        either=pinnable if elastic else frozenset(),
        housekeeping=_cpus(nodes, slice(reserve)),
        idle=whole - pinnable,
    )


def _cpus(
    nodes: Iterable[Node], cores: slice, threads: int | None = None
) -> frozenset[int]:
    """Return the CPUs of the sliced cores of each node.

    :param threads: number of threads of each core, counted from the first; None for
        all
    """
    return frozenset(
        cpu for node in nodes for core in node.cores[cores] for cpu in core[:threads]
    )
