# SPDX-License-Identifier: Apache-2.0
"""The request for a host's configuration: its mode and the operator's choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nova_perfvm.generate.hosts.topology import Topology
from nova_perfvm.placement.host_schemes import Mode
from nova_perfvm.policy import Policy

MODES: Final[tuple[Mode, ...]] = ("dedicated", "shared", "mixed", "elastic")

# For the operating system, its agents and page cache, and QEMU's own memory,
# which is about 1 GiB for a VM of 20 vCPUs.  Nova's default, 512 MiB a host,
# is less than one such VM takes.
RESERVED_MEMORY_GB: Final = 4


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A request for the configuration of one host.

    :ivar class_name: the pinned class whose VMs the host is for; None where the
        policy has only one, or the host serves all pinned classes or none
    :ivar reserve: number of housekeeping cores on each NUMA node
    :ivar reserve_memory_gb: memory reserved for the host, in GiB per NUMA node
    :ivar shared_nodes: number of shared NUMA nodes of a mixed host, counted from the
        last
    :ivar read_iops: capacity of the host's disks in reads per second; None if
        Placement counts no guarantee of the host's classes
    :ivar write_iops: capacity of the host's disks in writes per second, likewise
    """

    policy: Policy
    topology: Topology
    mode: Mode
    class_name: str | None = None
    reserve: int = 0
    reserve_memory_gb: int = RESERVED_MEMORY_GB
    shared_nodes: int = 1
    read_iops: int | None = None
    write_iops: int | None = None
