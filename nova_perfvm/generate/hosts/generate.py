# SPDX-License-Identifier: Apache-2.0
"""From a request to everything that one host and its controllers need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nova_perfvm.facts import NUMACell
from nova_perfvm.generate import labels, options
from nova_perfvm.generate.hosts import (
    admission,
    kernel,
    memory,
    nova_conf,
    provider,
    remarks,
    residents,
)
from nova_perfvm.generate.hosts import cpus as cpu_sets
from nova_perfvm.generate.hosts.cpus import CPUSets
from nova_perfvm.generate.hosts.kernel import KernelAdvice
from nova_perfvm.generate.hosts.memory import NodeMemory
from nova_perfvm.generate.hosts.request import HostRequest
from nova_perfvm.generate.hosts.topology import Topology
from nova_perfvm.generate.options import Setting
from nova_perfvm.placement import units
from nova_perfvm.policy import VMClass
from nova_perfvm.rules.slots import cell_cpus, host_slots


@dataclass(frozen=True, slots=True)
class HostConfig:
    """The configuration of one compute host, and what it rests on elsewhere.

    :ivar vm_class: the pinned class that the host is for, None for none
    :ivar classes: those whose VMs come to it
    :ivar iops: for ``read`` and ``write`` the capacity, and the guarantee
    :ivar cells: the NUMA nodes that nova-compute will report, without VMs
    :ivar room: VMs of the class that fit the empty host
    :ivar slots: VMs of the class that it may hold
    :ivar nova: nova.conf of the host
    :ivar provider: content of provider.yaml, None where the host needs none
    :ivar scheduler: nova.conf of the nova-scheduler hosts
    :ivar placement: placement.conf
    :ivar warnings: what may go wrong, or costs more than it seems
    :ivar notes: what to do beside copying the lines
    :ivar label_commands: those that give the host its label; empty if it needs none
    """

    request: HostRequest
    vm_class: VMClass | None
    classes: list[VMClass]
    iops: dict[str, tuple[int, int]]
    cpus: CPUSets
    memory: tuple[NodeMemory, ...]
    cells: tuple[NUMACell, ...]
    room: int
    slots: int
    nova: tuple[Setting, ...]
    provider: dict[str, Any] | None
    kernel: KernelAdvice
    scheduler: tuple[Setting, ...]
    placement: tuple[Setting, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    label_commands: tuple[str, ...] = ()

    @property
    def usable(self) -> tuple[int, ...]:
        """CPUs of each cell that VMs of the pinned class may own."""
        if self.vm_class is None:
            return ()
        return tuple(cell_cpus(self.vm_class, cell)[0] for cell in self.cells)


def generate(request: HostRequest, policy_file: str | None = None) -> HostConfig:
    """Return the configuration of one host.

    :param policy_file: where the policy was read, None for the built-in one
    :raises HostConfigError: when the request contradicts the policy, the host or
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
    cells = _cells(request.topology, cpus, shares)
    # Memory that is not known is no limit.
    needed_mb = 0 if request.topology.memory_mb is None else None
    room = host_slots(vm_class, cells, needed_mb) if vm_class else 0
    count = units.usable_slots(request.policy, room)
    config = HostConfig(
        request=request,
        vm_class=vm_class,
        classes=classes,
        iops=iops,
        cpus=cpus,
        memory=shares,
        cells=cells,
        room=room,
        slots=count,
        nova=nova_conf.settings(cpus, shares, classes),
        provider=provider.document(request, vm_class, count, iops),
        kernel=kernel.advise(request.topology, cpus, shares),
        scheduler=(
            *options.wanted(request.policy, options.SCHEDULER),
            options.policy_file(policy_file),
        ),
        placement=options.wanted(request.policy, options.PLACEMENT),
    )
    return replace(
        config,
        warnings=remarks.warnings(config),
        notes=remarks.notes(config),
        label_commands=_label_commands(config),
    )


def _label_commands(config: HostConfig) -> tuple[str, ...]:
    """Return how a host of a pinned class gets its label; enrolling gives it one."""
    policy = config.request.policy
    several = len(policy.pinned_classes) > 1
    if (
        not (policy.managed_hosts == "labelled" or several)
        or policy.placement == "units"
        or not config.slots
    ):
        return ()
    return labels.commands(config.classes, ["HOST"])


def _cells(
    topology: Topology, cpus: CPUSets, shares: tuple[NodeMemory, ...]
) -> tuple[NUMACell, ...]:
    """Return a configured, empty host's cells, memory of the host itself left out.

    Nova counts a cell's whole memory and Placement the host's less what is
    reserved; a slot must fit both.  Memory that is not known counts as none.
    """
    return tuple(
        NUMACell(
            pinned_cpus=frozenset(),
            memory_mb=share.vms_mb or 0,
            memory_usage_mb=0,
            **cpus.cell(node),
        )
        for node, share in zip(topology.nodes, shares, strict=True)
    )
