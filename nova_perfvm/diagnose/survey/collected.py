# SPDX-License-Identifier: Apache-2.0
"""What was collected on hosts, as a snapshot of the cloud that they are part of.

What no host shows is made up as Nova and Placement would have it, and is a gap: who
may use a host, what Placement counts, which flavors there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.hypervisor import Hypervisor, RunningVM, Unread
from nova_perfvm.facts.snapshot import (
    ComputeHost,
    Inventory,
    Provider,
    Server,
    ServerCell,
    Snapshot,
)

_NO_NOVA = (
    "Nova: what was collected tells hosts and the VMs that run on them; aggregates, "
    "flavors without a VM, and migrations are not known: save a snapshot (openstack "
    "perfvm snapshot save)"
)
_NO_PLACEMENT = (
    "Placement: inventories are taken to be what nova-compute would report of these "
    "CPUs, with disk enough, and allocations to be what the VMs have"
)
_UNEVEN = (
    "its NUMA nodes have {} cores, and CPUs {} are offline: bring these online (echo 1 "
    "> /sys/devices/system/cpu/cpuN/online), then collect again"
)
_NO_SETS = (
    "its nova.conf was not collected: its CPU sets are taken to be what the VMs there "
    "show"
)
# The most that Placement counts.
_ENOUGH_GB: Final = 2**31 - 1


def as_snapshot(hosts: Sequence[Hypervisor]) -> Snapshot:
    """Return the cloud of hosts that was collected on each.

    :raises PerfVMError: when no host told its NUMA nodes and VMs, or two have one
        name
    """
    names = Counter(host.hostname for host in hosts)
    if twice := sorted(name for name, times in names.items() if times > 1):
        raise PerfVMError(
            f"{', '.join(twice)} was collected more than once: name one file of each "
            "host"
        )
    gaps: list[str] = []
    made: list[ComputeHost] = []
    providers: list[Provider] = []
    servers: list[Server] = []
    for seen in hosts:
        host = seen.host
        if isinstance(host, Unread) or seen.unlisted:
            why = host if isinstance(host, Unread) else seen.unlisted
            gaps.append(f"{seen.hostname}: {why}")
            continue
        gaps += [
            f"{seen.hostname}: VM {uuid}: {unread.reason}"
            for uuid, unread in seen.unread_vms.items()
        ]
        if host.shape is None and seen.offline:
            cores, off = " + ".join(map(str, host.cores)), format_cpus(seen.offline)
            gaps.append(f"{seen.hostname}: {_UNEVEN.format(cores, off)}")
        if seen.sets is None:
            gaps.append(f"{seen.hostname}: {_NO_SETS}")
        here = [
            replace(vm.server, cells=tuple(_cells(host, vm)))
            for vm in seen.vms.values()
        ]
        made.append(host.divided(*(seen.sets or _sets(seen, host))))
        servers += here
        providers.append(_provider(made[-1], here))
    if not made:
        raise PerfVMError("\n".join(gaps))
    return Snapshot(
        taken_at=max(seen.taken_at for seen in hosts),
        hosts=tuple(made),
        providers=tuple(providers),
        servers=tuple(servers),
        images=None,
        gaps=(_NO_NOVA, _NO_PLACEMENT, *gaps),
    )


def _sets(seen: Hypervisor, host: ComputeHost) -> tuple[frozenset[int], frozenset[int]]:
    """Return the sets that the VMs of a host show; all CPUs in both, if they do not."""
    online = host.cpus
    pins, shared = frozenset[int](), frozenset[int]()
    for vm in seen.vms.values():
        if vm.pins:
            pins |= vm.cpus or online
        else:
            shared |= (vm.cpus or online) & online
    if pins and shared.isdisjoint(pins):
        return online - shared, shared
    return online, online


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


def _cells(host: ComputeHost, vm: RunningVM) -> Iterator[ServerCell]:
    """Yield a cell for each NUMA node of the host on which a VM owns CPUs."""
    on = {
        cell.id: {v: cpu for v, cpu in vm.pins.items() if cpu in cell.cpuset}
        for cell in host.cells
    }
    used = {node: pins for node, pins in on.items() if pins}
    for node, pins in used.items():
        yield ServerCell(
            host_node=node,
            vcpus=frozenset(pins),
            memory_mb=vm.server.memory_mb // len(used),
            cpu_pinning=pins,
        )
