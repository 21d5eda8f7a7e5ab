# SPDX-License-Identifier: Apache-2.0
"""What the host's kernel and tuned have to do for the CPUs that VMs own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nova_perfvm import cpuset
from nova_perfvm.generate.hosts.cpus import CPUSets
from nova_perfvm.generate.hosts.memory import NodeMemory
from nova_perfvm.generate.hosts.topology import Topology


@dataclass(frozen=True, slots=True)
class KernelAdvice:
    """Advice, not configuration: Nova starts without it.

    :ivar arguments: for the kernel's command line
    :ivar tuned_profile: the profile of tuned
    :ivar isolated_cores: for /etc/tuned/cpu-partitioning-variables.conf; empty
        with other profiles
    :ivar host_cpus: for CPUAffinity in /etc/systemd/system.conf; empty: not set
    :ivar why: sentences that explain the choice
    """

    arguments: tuple[str, ...]
    tuned_profile: str
    isolated_cores: str
    host_cpus: str
    why: tuple[str, ...]


def advise_kernel(
    topology: Topology, cpus: CPUSets, memory: Sequence[NodeMemory]
) -> KernelAdvice:
    """Return the kernel arguments and the tuned profile for a host."""
    # Idle siblings share their core with a VM's CPU: the host works on them only
    # if it has nothing better.
    idle = cpus.idle if cpus.housekeeping or cpus.shared else frozenset()
    isolated = cpus.dedicated | idle
    rest = topology.cpus - isolated
    arguments: list[str] = []
    why: list[str] = []
    profile, cores = "virtual-host", ""
    if cpus.dedicated:
        arguments.append("numa_balancing=disable")
        why.append(
            "numa_balancing: pinned VMs are bound to their node; scanning their memory "
            "only costs page faults."
        )
    if cpus.dedicated and rest:
        profile, cores = "cpu-partitioning", cpuset.format_cpus(isolated)
        arguments += [
            f"nohz_full={cores}",
            f"rcu_nocbs={cores}",
            f"isolcpus=managed_irq,{cores}",
        ]
        why.append(
            "nohz_full, rcu_nocbs: no timer ticks and no RCU callbacks on the VMs' "
            "CPUs; the other CPUs do that work."
        )
        why.append(
            "isolcpus: managed_irq only. Never isolcpus=domain here: QEMU's emulator "
            "and vhost threads may run on all CPUs of their VM, and without load "
            "balancing they would all stay on one."
        )
        why.append("tuned's cpu-partitioning sets these three itself.")
    elif cpus.dedicated:
        why.append(
            "No nohz_full, rcu_nocbs or isolcpus: every CPU belongs to VMs, and the "
            "kernel's own work has to run on some of them."
        )
    elif cpus.either:
        why.append(
            "No nohz_full, rcu_nocbs or isolcpus: while general VMs are here, many "
            "tasks share each CPU, and need the ticks and the balancing."
        )
    host_cpus = "" if cpus.dedicated else cpuset.format_cpus(cpus.housekeeping)
    if host_cpus:
        why.append("CPUAffinity keeps the host's own services on its own CPUs.")
    arguments += _huge_pages(memory)
    if any(share.page_kb for share in memory):
        why.append(
            "hugepages: per node, at boot, when memory is not fragmented yet (needs "
            "kernel 5.15 or newer)."
        )
    return KernelAdvice(tuple(arguments), profile, cores, host_cpus, tuple(why))


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
