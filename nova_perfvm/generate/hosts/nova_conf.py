# SPDX-License-Identifier: Apache-2.0
"""The options of a compute host's nova.conf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import cpuset
from nova_perfvm.generate import options
from nova_perfvm.generate.hosts.cpus import CPUSets
from nova_perfvm.generate.hosts.memory import NodeMemory
from nova_perfvm.generate.hosts.topology import Topology
from nova_perfvm.placement.settings import COMPUTE, NUMA_PACKING, PIN_SET, Setting
from nova_perfvm.policy import VMClass

# The kernel's own pages on x86, in KiB.
_SMALL_PAGE_KB: Final = 4

_RESERVED: Final = Setting(
    "DEFAULT",
    "reserved_host_memory_mb",
    (),
    "For the operating system and QEMU's own memory (about 1 GiB for a VM of 20 "
    "vCPUs): all memory outside the huge pages set aside below.",
)
_SMALL_PAGES: Final = Setting(
    "DEFAULT",
    "reserved_huge_pages",
    (),
    "The host keeps its small pages: without this option Nova would place a pinned VM "
    "that names no page size on them. (Pages of 4 KiB, as on x86.)",
)
_CPU_MODE: Final = Setting(
    "libvirt",
    "cpu_mode",
    ("host-passthrough",),
    "The guest gets every instruction of the CPU that it owns. Live migration then "
    "needs hosts of the same CPU model and microcode; elsewhere use host-model.",
)
# Physical networks by which :mod:`nova_perfvm.scheduler.steering` names a NUMA node.
_PHYSNETS: Final = Setting(
    "neutron",
    "physnets",
    (),
    "Not real networks: by these names the scheduler tells nova-compute the NUMA node "
    "of a claim. Keep names that the host has here already beside them.",
)
_NUMA_NODES: Final = replace(
    _PHYSNETS, option="numa_nodes", why="The NUMA node of claims with this name."
)


def nova_settings(
    cpus: CPUSets, memory: Sequence[NodeMemory], classes: Sequence[VMClass]
) -> tuple[Setting, ...]:
    """Return the options for memory, deleted guests, CPU sets and the CPU mode.

    :param classes: the classes that the host serves
    """
    reserved_mb = sum(share.reserved_mb for share in memory)
    settings = [replace(_RESERVED, values=(str(reserved_mb),))]
    small = tuple(
        f"node:{share.node},size:{_SMALL_PAGE_KB},"
        f"count:{share.reserved_mb * 1024 // _SMALL_PAGE_KB}"
        for share in memory
        if share.page_kb is not None
    )
    if small:
        settings.append(replace(_SMALL_PAGES, values=small))
    settings += [options.DELETED_POLL, options.DELETED_ACTION]
    settings += [
        replace(setting, values=(cpuset.format_cpus(found),))
        for setting, found in (
            (PIN_SET, cpus.pin_set),
            (options.DEDICATED_SET, cpus.dedicated),
            (options.SHARED_SET, cpus.shared),
        )
        if found
    ]
    if any(vm_class.pinned for vm_class in classes):
        settings.append(_CPU_MODE)
    return tuple(settings)


def affinities(topology: Topology, cpus: CPUSets) -> tuple[Setting, ...]:
    """Return options by which the scheduler chooses the NUMA node of a claim.

    Physical networks name the nodes with dedicated CPUs; empty without such nodes.
    """
    names = {
        f"{const.CELL_PHYSNET}{node.id}": node.id
        for node in topology.nodes
        if node.cpus & cpus.dedicated
    }
    if not names:
        return ()
    return (
        replace(_PHYSNETS, values=(",".join(names),)),
        *(
            replace(_NUMA_NODES, section=f"neutron_physnet_{name}", values=(str(node),))
            for name, node in names.items()
        ),
        replace(NUMA_PACKING, service=COMPUTE),
    )
