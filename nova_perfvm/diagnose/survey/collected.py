# SPDX-License-Identifier: Apache-2.0
"""Turn the data collected on hosts into a snapshot of their cloud.

Hosts do not show aggregates, Placement's inventories, or flavors.  The snapshot assumes
the inventories that nova-compute would report, and lists all this as gaps.
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
    "Placement: assumed are the inventories that nova-compute would report for these "
    "CPUs, enough disk, and allocations equal to the VMs' sizes"
)
_UNEVEN = (
    "its NUMA nodes have {} cores, and CPUs {} are offline: bring these online (echo 1 "
    "> /sys/devices/system/cpu/cpuN/online), then collect again"
)
_NO_SETS = (
    "its nova.conf was not collected: the CPU sets are inferred from the pinning of "
    "the VMs"
)
# The largest inventory that Placement allows.
_ENOUGH_GB: Final = 2**31 - 1


def as_snapshot(hosts: Sequence[Hypervisor]) -> Snapshot:
    """Return a snapshot of the cloud that collected hosts are part of.

    :raises PerfVMError: when no host has data about its NUMA nodes and VMs, or two
        hosts have the same name
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
    """Return the dedicated and the shared set by a host's VMs; else all CPUs twice."""
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
    """Return the provider that Placement would have; PCPU only with a dedicated set."""
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
            # Generous, so that the running VMs fit whatever the real ratio is.
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
