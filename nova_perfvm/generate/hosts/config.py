# SPDX-License-Identifier: Apache-2.0
"""The configuration of one compute host, as it is generated."""

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
    """The configuration of one compute host, and the settings it needs elsewhere.

    :ivar room: by pinned class that the host is for, how many of its VMs it may hold
    :ivar classes: those whose VMs come to it
    :ivar iops: for ``read`` and ``write`` the capacity, and the guarantee
    :ivar cells: the NUMA nodes that nova-compute will report, without VMs
    :ivar nova: nova.conf of the host
    :ivar provider: content of provider.yaml, None where the host needs none
    :ivar scheduler: nova.conf of the nova-scheduler hosts
    :ivar placement: placement.conf
    :ivar warnings: what may go wrong, or costs more than it seems
    :ivar notes: what to do beside copying the lines
    :ivar label_commands: those that give the host its label; empty if it needs none
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
        """How many VMs of pinned classes the host may hold, the smallest ones."""
        return max(self.room.values(), default=0)
