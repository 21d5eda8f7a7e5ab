# SPDX-License-Identifier: Apache-2.0
"""The generated configuration of one compute host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nova_perfvm.facts import NUMACell
from nova_perfvm.generate.hosts.cpus import CPUSets
from nova_perfvm.generate.hosts.kernel import KernelAdvice
from nova_perfvm.generate.hosts.memory import NodeMemory
from nova_perfvm.generate.hosts.request import HostRequest
from nova_perfvm.placement.settings import Setting
from nova_perfvm.policy import VMClass


@dataclass(frozen=True, slots=True)
class HostConfig:
    """The configuration of one compute host, and the controllers' settings for it.

    :ivar room: {pinned class: most VMs on the host}
    :ivar classes: the classes whose VMs run on the host
    :ivar iops: see :func:`.admission.iops_capacity`
    :ivar cells: the NUMA nodes that nova-compute will report on the empty host
    :ivar nova: options of the host's nova.conf
    :ivar provider: content of provider.yaml, None where the host needs none
    :ivar scheduler: options of nova-scheduler's nova.conf
    :ivar placement: options of placement.conf
    :ivar warnings: dangers and hidden costs of this configuration
    :ivar notes: the operator's steps beside copying the files
    :ivar label_commands: commands that label the host; empty if it needs no label
    """

    request: HostRequest
    room: dict[VMClass, int]
    classes: list[VMClass]
    iops: dict[str, tuple[int, int]]
    cpus: CPUSets
    memory: tuple[NodeMemory, ...]
    cells: tuple[NUMACell, ...]
    nova: tuple[Setting, ...]
    provider: dict[str, Any] | None
    kernel: KernelAdvice
    scheduler: tuple[Setting, ...]
    placement: tuple[Setting, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    label_commands: tuple[str, ...] = ()

    @property
    def slots(self) -> int:
        """Number of VMs that the host may hold of the pinned class with the most."""
        return max(self.room.values(), default=0)
