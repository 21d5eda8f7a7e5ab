# SPDX-License-Identifier: Apache-2.0
"""What was collected on hosts, as a snapshot of the cloud that they are part of.

What no host shows is made up as Nova and Placement would have it, and is a gap: who
may use a host, what Placement counts, which flavors there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import (
    COLLECTED,
    ComputeHost,
    HostCell,
    Inventory,
    Provider,
    Server,
    ServerCell,
    Snapshot,
)
from nova_perfvm.generate.hosts import Topology, TopologyError
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.collect.collected import Collected, NotReadError
from nova_perfvm.measure.observed.domains import Domain

_NO_NOVA = (
    "Nova: what was collected tells hosts and the VMs that run on them; aggregates, "
    "flavors without a VM, and migrations are not known: save a snapshot (openstack "
    "perfvm snapshot save)"
)
_NO_PLACEMENT = (
    "Placement: inventories are taken to be what nova-compute would report of these "
    "CPUs, with disk enough, and allocations to be what the VMs have"
)
# The most that Placement counts.
_ENOUGH_GB: Final = 2**31 - 1


def of(hosts: Sequence[Collected]) -> Snapshot:
    """Return the cloud of hosts that was collected on each.

    :raises PerfVMError: when no host told its NUMA nodes and VMs, or two have one
        name
    """
    names = [collected.hostname for collected in hosts]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PerfVMError(
            f"{', '.join(twice)} was collected more than once: name one file of each "
            "host"
        )
    gaps: list[str] = []
    made: list[ComputeHost] = []
    providers: list[Provider] = []
    servers: list[Server] = []
    for collected in hosts:
        subject = HostSubject(collected)
        try:
            topology = subject.topology
            here = [_server(subject, topology, domain) for domain in subject.domains]
        except (NotReadError, TopologyError) as exc:
            gaps.append(f"{collected.hostname}: {exc}")
            continue
        gaps += [
            f"{collected.hostname}: VM {uuid}: {why}"
            for uuid, why in subject.unread_domains.items()
        ]
        gaps += _unknown_sets(subject)
        host = _host(subject, topology)
        made.append(host)
        servers += here
        providers.append(_provider(host, here))
    if not made:
        raise PerfVMError("\n".join(gaps))
    return Snapshot(
        taken_at=max(collected.taken_at for collected in hosts),
        hosts=tuple(made),
        providers=tuple(providers),
        servers=tuple(servers),
        images=None,
        gaps=(_NO_NOVA, _NO_PLACEMENT, *gaps),
    )


def _unknown_sets(subject: HostSubject) -> Iterator[str]:
    if not subject.cpu_sets.whole:
        yield (
            f"{subject.collected.hostname}: its nova.conf was not collected: its CPU "
            "sets are taken to be what the VMs there show"
        )


def _cpu_sets(subject: HostSubject) -> tuple[frozenset[int], frozenset[int]]:
    """Return the CPUs that VMs may own, and those that they share."""
    online = subject.topology.cpus
    told = subject.cpu_sets
    if told.whole:
        return told.dedicated & online, told.shared & online
    pins = frozenset().union(*(domain.pinned_cpus for domain in subject.domains))
    floating = [domain.cpus for domain in subject.domains if not domain.pins]
    shared = frozenset().union(*(cpus or online for cpus in floating)) & online
    if pins and shared.isdisjoint(pins):
        return online - shared, shared
    return online, online


def _host(subject: HostSubject, topology: Topology) -> ComputeHost:
    name = subject.collected.hostname
    dedicated, shared = _cpu_sets(subject)
    return ComputeHost(
        host=name,
        node=name,
        provider=name,
        service=name,
        shape=topology.shape,
        memory_mb=topology.memory_mb or 0,
        cells=tuple(
            HostCell(
                id=node.id,
                cpuset=node.cpus & shared,
                pcpuset=node.cpus & dedicated,
                memory_mb=node.memory_mb or 0,
                siblings=tuple(
                    frozenset(core) & (dedicated | shared)
                    for core in node.cores
                    if len(core) > 1 and set(core) & (dedicated | shared)
                ),
            )
            for node in topology.nodes
        ),
        cells_source=COLLECTED,
    )


def _provider(host: ComputeHost, servers: Iterable[Server]) -> Provider:
    """Return what Placement would have: PCPU only of a host with a dedicated set."""
    pcpus = frozenset().union(*(cell.pcpuset for cell in host.cells))
    vcpus = frozenset().union(*(cell.cpuset for cell in host.cells))
    totals = {
        "PCPU": 0 if pcpus == vcpus else len(pcpus),
        "VCPU": len(vcpus),
        "MEMORY_MB": host.memory_mb,
        "DISK_GB": _ENOUGH_GB,
    }
    allocations = {}
    for server in servers:
        kind = "PCPU" if server.pinned and totals["PCPU"] else "VCPU"
        allocations[server.id] = {kind: server.vcpus, "MEMORY_MB": server.memory_mb}
    return Provider(
        uuid=host.provider,
        name=host.node,
        generation=0,
        inventories={
            # As many VMs as run may share the CPUs, whatever the ratio is.
            name: Inventory(total, total, allocation_ratio=16 if name == "VCPU" else 1)
            for name, total in totals.items()
            if total
        },
        allocations=allocations,
        root=host.provider,
    )


def _server(subject: HostSubject, topology: Topology, domain: Domain) -> Server:
    """Return a VM that runs; of one that Nova did not make, what libvirt tells."""
    nova = domain.nova
    specs = dict(nova.extra_specs or {}) if nova else {}
    pinned = bool(domain.pins)
    if pinned:
        specs.setdefault(const.CPU_POLICY, "dedicated")
    name = nova.name if nova and nova.name else domain.name
    return Server(
        id=domain.uuid,
        name=name,
        host=subject.collected.hostname,
        status="ACTIVE",
        vcpus=domain.vcpus,
        extra_specs=specs,
        pinned=pinned,
        node=subject.collected.hostname,
        flavor=nova.flavor if nova else "",
        memory_mb=domain.memory_kb // 1024,
        image=nova.image if nova else None,
        cells=tuple(_cells(topology, domain)),
        page_size_kb=min(domain.page_sizes_kb, default=0) or None,
    )


def _cells(topology: Topology, domain: Domain) -> Iterator[ServerCell]:
    """Yield a cell for each NUMA node of the host on which a VM owns CPUs."""
    if not domain.pins:
        return
    on = {
        node.id: {v: cpu for v, cpu in domain.pins.items() if cpu in node.cpus}
        for node in topology.nodes
    }
    used = {node: pins for node, pins in on.items() if pins}
    for node, pins in used.items():
        yield ServerCell(
            host_node=node,
            vcpus=frozenset(pins),
            memory_mb=domain.memory_kb // 1024 // len(used),
            cpu_pinning=pins,
        )
