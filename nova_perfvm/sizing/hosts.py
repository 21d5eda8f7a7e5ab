# SPDX-License-Identifier: Apache-2.0
"""The room of an empty host, divided as ``host config`` divides it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.snapshot import Snapshot
from nova_perfvm.generate.hosts import HostRequest, Mode, from_shape
from nova_perfvm.generate.hosts.admission import check_reserve
from nova_perfvm.generate.hosts.cpus import divide_cpus
from nova_perfvm.generate.hosts.memory import divide_memory
from nova_perfvm.policy import HostShape, Policy, VMClass


@dataclass(frozen=True, slots=True)
class HostModel:
    """The hosts to plan with; all are alike.

    :ivar memory_gb: memory of a host in GiB
    :ivar network_gbps: link of a host in Gbit/s; None if unknown
    :ivar reserve: cores of each NUMA node for the host itself
    :ivar watts: power of a host under load, ``cost`` its cost; None if unknown
    """

    shape: HostShape
    memory_gb: int
    network_gbps: float | None = None
    reserve: int = 0
    watts: float | None = None
    cost: float | None = None


class Cell(NamedTuple):
    """Room for VMs on one NUMA node: CPUs, and memory in GiB.

    :ivar threads: number of threads of each core
    """

    cpus: int
    memory_gb: float
    threads: int = 1


def room(
    policy: Policy, model: HostModel, mode: Mode, pinned: Sequence[VMClass]
) -> tuple[Cell, ...]:
    """Return an empty host's CPUs, pinned and shared, and VM memory, by NUMA node.

    :param pinned: the pinned classes that the host serves; none for a shared host
    :raises HostConfigError: when the host cannot be divided so
    """
    topology = from_shape(model.shape).with_memory(model.memory_gb)
    request = HostRequest(policy, topology, mode, reserve=model.reserve)
    check_reserve(request)
    cpus = divide_cpus(request, pinned)
    usable = cpus.pinnable | cpus.shared
    return tuple(
        Cell(len(node.cpus & usable), (memory.vms_mb or 0) / 1024, model.shape.threads)
        for node, memory in zip(
            topology.nodes, divide_memory(request, cpus, pinned), strict=True
        )
    )


def model_of(snapshot: Snapshot) -> tuple[HostShape, int]:
    """Return the most common shape of a cloud's hosts, and its least memory in GiB.

    :raises PerfVMError: when no host shows its NUMA nodes
    """
    shapes = Counter(host.shape for host in snapshot.hosts if host.shape)
    if not shapes:
        raise PerfVMError(
            "no host shows its NUMA nodes: name --host-shape, --memory-gb"
        )
    ((shape, _),) = shapes.most_common(1)
    return shape, min(
        host.all_memory_mb // 1024 for host in snapshot.hosts if host.shape == shape
    )
