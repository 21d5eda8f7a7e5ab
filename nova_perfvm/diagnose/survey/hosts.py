# SPDX-License-Identifier: Apache-2.0
"""The hosts of a cloud: shapes, VMs by NUMA node, and slots of a class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from nova_perfvm.diagnose.capacity import Slots, host_capacity
from nova_perfvm.facts import NUMACell
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.snapshot import UNKNOWN, Server, Snapshot
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.rules.slots import host_mode, host_slots


@dataclass(frozen=True)
class NodeUse:
    """One NUMA node of a host.

    :ivar dedicated: CPUs that VMs may own
    :ivar shared: CPUs that VMs share; of a host without cpu sets all are both
    :ivar pinned: CPUs that VMs own
    :ivar vms: VMs that own CPUs of it, by their vCPUs
    """

    id: int
    dedicated: int
    shared: int
    pinned: int
    vms: Mapping[int, int]


@dataclass(frozen=True)
class HostUse:
    """One compute host.

    :ivar shape: in words, UNKNOWN where it shows none
    :ivar mode: ``dedicated``, ``shared``, ``mixed``; ``open`` without cpu sets, or
        where nobody tells these from shared CPUs; ``none`` without NUMA nodes
    :ivar state: up or down, and whether it is disabled
    :ivar servers: all on it
    :ivar pinned: those that own CPUs
    :ivar slots: of the class, by what is on it now; None without a policy
    :ivar possible: VMs of the class that it would hold if it were empty and
        configured with all CPUs dedicated
    :ivar others: servers on it that are not of the class
    """

    name: str
    shape: str
    mode: str
    state: str
    cells_source: str
    memory_mb: int
    servers: int
    pinned: int
    nodes: tuple[NodeUse, ...] = ()
    slots: Slots | None = None
    possible: int = 0
    others: int = 0


def hosts_of(policy: Policy | None, snapshot: Snapshot) -> tuple[HostUse, ...]:
    """Return all hosts.

    :param policy: with one pinned class, as :func:`.judged.as_if` returns it; None
        where none could be made
    :param snapshot: as that returns it, too
    """
    counted: dict[str, Slots] = {}
    vm_class = None
    if policy is not None:
        if not pages_are_known(snapshot):
            policy = _without_pages(policy)
        (vm_class, *_) = policy.pinned_classes
        counted = {
            slots.name: slots
            for slots in host_capacity(policy, snapshot)
            if slots.class_name == vm_class.name
        }
    return tuple(
        _host(view, vm_class, counted.get(view.name)) for view in views_of(snapshot)
    )


def pages_are_known(snapshot: Snapshot) -> bool:
    """Return whether any host tells how many memory pages of which size it has."""
    return any(cell.mempages for host in snapshot.hosts for cell in host.cells)


def _without_pages(policy: Policy) -> Policy:
    """Return the policy as it is where memory of any page size will do."""
    return replace(
        policy,
        classes=tuple(replace(c, mem_page_size=None) for c in policy.classes),
    )


def _host(view: HostView, vm_class: VMClass | None, slots: Slots | None) -> HostUse:
    host, facts = view.compute, view.facts
    possible = 0
    if vm_class is not None:
        possible = host_slots(vm_class, map(_all_dedicated, facts.cells))
    return HostUse(
        name=view.name,
        shape=str(host.shape or UNKNOWN),
        mode=host_mode(facts),
        state=view.state,
        cells_source=host.cells_source,
        memory_mb=sum(cell.memory_mb for cell in host.cells) or host.memory_mb,
        servers=len(view.servers),
        pinned=sum(server.owns_cpus for server in view.servers),
        nodes=tuple(_nodes(facts.cells, view.servers)),
        slots=slots,
        possible=possible,
        others=len(view.servers) - (slots.used if slots else 0),
    )


def _all_dedicated(cell: NUMACell) -> NUMACell:
    return cell._replace(pcpuset=cell.pcpuset | cell.cpuset)


def _nodes(cells: Iterable[NUMACell], servers: Iterable[Server]) -> Iterator[NodeUse]:
    vms: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for server in servers:
        for part in server.cells or ():
            if part.host_node is not None and part.cpu_pinning:
                vms[part.host_node][len(part.cpu_pinning)] += 1
    for cell in cells:
        yield NodeUse(
            cell.id,
            len(cell.pcpuset),
            len(cell.cpuset),
            len(cell.pinned_cpus),
            dict(sorted(vms[cell.id].items(), reverse=True)),
        )


@dataclass(frozen=True)
class ShapeGroup:
    """Hosts that are alike.

    :ivar memory_gb: the least and the most that one of them has
    :ivar sources: where their NUMA nodes are known from
    """

    shape: str
    mode: str
    hosts: int
    memory_gb: tuple[int, int]
    servers: int
    pinned: int
    sources: tuple[str, ...]


def shape_groups(hosts: Iterable[HostUse]) -> tuple[ShapeGroup, ...]:
    """Return the hosts by shape and mode, the largest group first."""
    by_kind: dict[tuple[str, str], list[HostUse]] = defaultdict(list)
    for host in hosts:
        by_kind[host.shape, host.mode].append(host)
    groups = [
        ShapeGroup(
            shape,
            mode,
            len(mine),
            (
                min(host.memory_mb for host in mine) // 1024,
                max(host.memory_mb for host in mine) // 1024,
            ),
            sum(host.servers for host in mine),
            sum(host.pinned for host in mine),
            tuple(sorted({host.cells_source for host in mine})),
        )
        for (shape, mode), mine in by_kind.items()
    ]
    return tuple(sorted(groups, key=lambda group: (-group.hosts, group.shape)))
