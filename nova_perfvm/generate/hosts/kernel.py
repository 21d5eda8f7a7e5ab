# SPDX-License-Identifier: Apache-2.0
"""Kernel arguments and the tuned profile for a host of pinned VMs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nova_perfvm import cpuset
from nova_perfvm.generate.hosts.cpus import CPUSets
from nova_perfvm.generate.hosts.memory import NodeMemory
from nova_perfvm.generate.hosts.topology import Topology


@dataclass(frozen=True, slots=True)
class KernelAdvice:
    """Advice for the host's kernel, without which Nova starts, too.

    :ivar arguments: arguments of the kernel's command line
    :ivar tuned_profile: name of tuned's profile
    :ivar isolated_cores: CPUs for /etc/tuned/cpu-partitioning-variables.conf; empty
        with other profiles
    :ivar cpu_affinity: CPUs for CPUAffinity in /etc/systemd/system.conf; empty: not set
    """

    arguments: tuple[str, ...]
    tuned_profile: str
    isolated_cores: str
    cpu_affinity: str


def advise_kernel(
    topology: Topology, cpus: CPUSets, memory: Sequence[NodeMemory]
) -> KernelAdvice:
    # Idle siblings share their core with a VM's CPU: the host uses them only if it has
    # no other CPUs.
    idle = cpus.idle if cpus.housekeeping or cpus.shared else frozenset()
    isolated = cpus.dedicated | idle
    arguments = ["numa_balancing=disable"] if cpus.dedicated else []
    profile, cores = "virtual-host", ""
    if cpus.dedicated and topology.cpus - isolated:
        profile, cores = "cpu-partitioning", cpuset.format_cpus(isolated)
        # Never isolcpus=domain: the kernel does not balance threads over isolated CPUs,
        # so QEMU's emulator and vhost threads would all stay on one CPU of their VM.
        arguments += [
            f"nohz_full={cores}",
            f"rcu_nocbs={cores}",
            f"isolcpus=managed_irq,{cores}",
        ]
    arguments += _huge_pages(memory)
    cpu_affinity = "" if cpus.dedicated else cpuset.format_cpus(cpus.housekeeping)
    return KernelAdvice(tuple(arguments), profile, cores, cpu_affinity)


def _huge_pages(memory: Sequence[NodeMemory]) -> Iterator[str]:
    for page_kb in sorted({share.page_kb for share in memory if share.page_kb}):
        size = f"{page_kb // 1048576}G" if page_kb >= 1048576 else f"{page_kb // 1024}M"
        counts = ",".join(
            f"{share.node}:{'<pages>' if share.pages is None else share.pages}"
            for share in memory
            if share.page_kb == page_kb
        )
        yield f"hugepagesz={size}"
        yield f"hugepages={counts}"
