# SPDX-License-Identifier: Apache-2.0
"""From a wish to everything that one host and its controllers need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nova_perfvm.generate import options
from nova_perfvm.generate.hosts import (
    admission,
    kernel,
    memory,
    nova_conf,
    provider,
    remarks,
    residents,
    slots,
)
from nova_perfvm.generate.hosts import cpus as cpu_sets
from nova_perfvm.placement import units

if TYPE_CHECKING:
    from nova_perfvm.facts import NUMACell
    from nova_perfvm.generate.hosts.cpus import CPUSets
    from nova_perfvm.generate.hosts.kernel import KernelAdvice
    from nova_perfvm.generate.hosts.memory import NodeMemory
    from nova_perfvm.generate.hosts.request import HostRequest
    from nova_perfvm.generate.options import Setting
    from nova_perfvm.policy import VMClass


@dataclass(frozen=True, slots=True)
class HostConfig:
    """The configuration of one compute host, and what it rests on elsewhere.

    :ivar vm_class: the pinned class that the host is for, None for none
    :ivar cells: the NUMA cells that nova-compute will report, without VMs
    :ivar slots: VMs of the class that the empty host may hold
    :ivar nova: nova.conf of the host
    :ivar provider: content of provider.yaml, None where the host needs none
    :ivar scheduler: nova.conf of the nova-scheduler hosts
    :ivar placement: placement.conf
    :ivar warnings: what may go wrong, or costs more than it seems
    :ivar notes: what to do beside copying the lines
    """

    request: HostRequest
    vm_class: VMClass | None
    cpus: CPUSets
    memory: tuple[NodeMemory, ...]
    cells: tuple[NUMACell, ...]
    slots: int
    nova: tuple[Setting, ...]
    provider: dict[str, Any] | None
    kernel: KernelAdvice
    scheduler: tuple[Setting, ...]
    placement: tuple[Setting, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def generate(request: HostRequest, policy_file: str | None = None) -> HostConfig:
    """Return the configuration of one host.

    :param policy_file: where the policy was read, None for the built-in one
    :raises HostConfigError: when the wish contradicts the policy, the host or
        the VMs on it; the message has the remedy
    :raises UnknownClassError: when the policy has no class of that name
    """
    admission.check_mode(request)
    admission.check_reserve(request)
    vm_class = admission.pinned_class(request)
    classes = admission.served_classes(request.policy, request.mode, vm_class)
    iops = admission.iops_capacity(request, classes)
    cpus = cpu_sets.divide(request, vm_class)
    if request.residents is not None:
        residents.check(request.residents, cpus)
    shares = memory.divide(request, cpus, classes)
    cells = slots.cells_of(request.topology, cpus, shares)
    known = request.topology.memory_mb is not None
    room = slots.count_slots(vm_class, cells, memory_known=known)
    count = units.usable_slots(request.policy, room)
    document = provider.document(request, vm_class, count, iops)
    return HostConfig(
        request=request,
        vm_class=vm_class,
        cpus=cpus,
        memory=shares,
        cells=cells,
        slots=count,
        nova=nova_conf.settings(cpus, shares, classes),
        provider=document,
        kernel=kernel.advise(request.topology, cpus, shares),
        scheduler=(
            *options.wanted(request.policy, options.SCHEDULER),
            options.policy_file(policy_file),
        ),
        placement=options.wanted(request.policy, options.PLACEMENT),
        warnings=remarks.warnings(request, vm_class, cpus, cells, count, iops, room),
        notes=remarks.notes(request, classes, cpus, count, document),
    )
