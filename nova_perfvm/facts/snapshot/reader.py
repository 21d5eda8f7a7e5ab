# SPDX-License-Identifier: Apache-2.0
"""Make the facts of hosts for the rules from a snapshot."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.facts import HostFacts, NUMACell, PagePool
from nova_perfvm.facts.placement_request import isolating_traits
from nova_perfvm.facts.snapshot.model import (
    NOVA_DATABASE,
    ComputeHost,
    HostCell,
    Snapshot,
)

# Small pages of x86.
_SMALL_KB: Final = 4


def host_facts(snapshot: Snapshot, host: ComputeHost) -> HostFacts:
    """Return the facts of a host at the time of the snapshot.

    A moving server counts in ``unpinned`` on each of its hosts, by its present flavor:
    no API shows the other flavor.
    """
    servers = snapshot.servers_by_host.get(host.host, ())
    moving = snapshot.moving_by_host.get(host.host, ())
    here = [cell for server in servers for cell in server.cells or ()]
    tree = snapshot.trees.get(host.provider)
    aggregates = snapshot.aggregates_by_host.get(host.host, ())
    cells = []
    for cell in host.cells:
        mine = [found for found in here if found.host_node == cell.id]
        pins = cell.pinned_cpus
        if pins is None:
            pins = frozenset(c for found in mine for c in found.cpu_pinning.values())
        memory_usage_mb = cell.memory_usage_mb
        if memory_usage_mb is None:
            memory_usage_mb = sum(found.memory_mb for found in mine)
        cpu_usage = cell.cpu_usage
        if cpu_usage is None:
            cpu_usage = sum(found.shared_vcpus for found in mine)
        used_kb = sum(
            found.memory_mb * 1024
            for server in servers
            if server.page_size_kb == _SMALL_KB
            for found in server.cells or ()
            if found.host_node == cell.id
        )
        cells.append(
            NUMACell(
                id=cell.id,
                cpuset=cell.cpuset,
                pcpuset=cell.pcpuset,
                pinned_cpus=pins,
                memory_mb=cell.memory_mb,
                memory_usage_mb=memory_usage_mb,
                siblings=cell.siblings,
                mempages=(*_assumed_pool(host, cell, used_kb), *cell.mempages),
                cpu_usage=cpu_usage,
            )
        )
    return HostFacts(
        host=host.host,
        nodename=host.node,
        cells=cells,
        vcpus_used=(
            sum(server.vcpus for server in servers)
            if host.vcpus_used is None
            else host.vcpus_used
        ),
        num_instances=(
            len(servers) if host.num_instances is None else host.num_instances
        ),
        labels=snapshot.labels(host.host),
        isolating=isolating_traits(a.metadata for a in aggregates),
        traits=None if tree is None else frozenset().union(*(p.traits for p in tree)),
        unpinned=sum(not server.owns_cpus for server in (*servers, *moving)),
        unreadable=host.unreadable,
    )


def _assumed_pool(
    host: ComputeHost, cell: HostCell, used_kb: int
) -> Iterator[PagePool]:
    """Yield the pool of small pages of a NUMA node if no source tells that pool.

    nova-compute reports the pool for every node, and Nova gives pages to no VM that
    asks for a page size on a node without pools.  Only Nova's database has the pools.

    :param used_kb: memory of the node's VMs that ask for small pages
    """
    if host.cells_source == NOVA_DATABASE:
        return
    if any(pool.size_kb < const.HUGE_KB for pool in cell.mempages):
        return
    huge_kb = sum(pool.size_kb * pool.total for pool in cell.mempages)
    total_kb = max(0, cell.memory_mb * 1024 - huge_kb)
    yield PagePool(_SMALL_KB, total_kb // _SMALL_KB, used_kb // _SMALL_KB)
