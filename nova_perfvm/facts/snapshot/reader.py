# SPDX-License-Identifier: Apache-2.0
"""Make the facts of hosts that the rules judge of a snapshot."""

from nova_perfvm.facts import HostFacts, NUMACell
from nova_perfvm.facts.placement_request import isolating_traits
from nova_perfvm.facts.snapshot.model import ComputeHost, Snapshot


def host_facts(snapshot: Snapshot, host: ComputeHost) -> HostFacts:
    """Return the facts of a host at the time of the snapshot.

    A server in a resize counts with its present size on each of its hosts: no API shows
    the other size.
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
        cells.append(
            NUMACell(
                id=cell.id,
                cpuset=cell.cpuset,
                pcpuset=cell.pcpuset,
                pinned_cpus=pins,
                memory_mb=cell.memory_mb,
                memory_usage_mb=memory_usage_mb,
                siblings=cell.siblings,
                mempages=cell.mempages,
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
