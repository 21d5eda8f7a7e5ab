# SPDX-License-Identifier: Apache-2.0
"""The options of a compute host's nova.conf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from nova_perfvm import cpuset
from nova_perfvm.generate import options
from nova_perfvm.generate.hosts.cpus import CPUSets
from nova_perfvm.generate.hosts.memory import NodeMemory
from nova_perfvm.generate.options import Setting
from nova_perfvm.policy import VMClass

# The kernel's own pages on x86, in KiB.
_SMALL_PAGE_KB: Final = 4


def nova_settings(
    cpus: CPUSets, memory: Sequence[NodeMemory], classes: Sequence[VMClass]
) -> tuple[Setting, ...]:
    """Return the options of a compute host.

    :param classes: those that the host serves
    """
    return (
        *_memory(memory),
        options.DELETED_POLL,
        options.DELETED_ACTION,
        *_cpu_sets(cpus),
        *_libvirt(classes),
    )


def _memory(memory: Sequence[NodeMemory]) -> Iterator[Setting]:
    if any(share.page_kb for share in memory):
        why = "Memory outside of the huge pages set aside below: no VM may count on it."
    else:
        why = (
            "For the operating system and QEMU's own memory (about 1 GiB for a VM of "
            "20 vCPUs); Nova's default of 512 is less than one such VM takes."
        )
    total = sum(share.reserved_mb for share in memory)
    yield Setting("DEFAULT", "reserved_host_memory_mb", (str(total),), why)
    small = tuple(
        f"node:{share.node},size:{_SMALL_PAGE_KB},"
        f"count:{share.reserved_mb * 1024 // _SMALL_PAGE_KB}"
        for share in memory
        if share.page_kb is not None
    )
    if small:
        yield Setting(
            "DEFAULT",
            "reserved_huge_pages",
            small,
            "Small pages are the host's: without this a pinned VM that names no page "
            "size would be put on them. (Pages of 4 KiB, as on x86.)",
        )


def _cpu_sets(cpus: CPUSets) -> Iterator[Setting]:
    for setting, found in (
        (options.PIN_SET, cpus.pin_set),
        (options.DEDICATED_SET, cpus.dedicated),
        (options.SHARED_SET, cpus.shared),
    ):
        if found:
            yield replace(setting, values=(cpuset.format_cpus(found),))


def _libvirt(classes: Sequence[VMClass]) -> Iterator[Setting]:
    pinned = [vm_class for vm_class in classes if vm_class.pinned]
    multiqueue = [vm_class for vm_class in classes if vm_class.vif_multiqueue]
    if multiqueue or pinned:
        yield Setting(
            "libvirt",
            "virt_type",
            ("kvm",),
            "Nova's default, said because nothing else pins VMs well, and with qemu "
            "(emulation) network cards silently get one queue.",
        )
    if pinned:
        yield Setting(
            "libvirt",
            "cpu_mode",
            ("host-passthrough",),
            "The guest gets every instruction and the cache sizes of the CPU that it "
            "owns. The price: live migration only between hosts of the same CPU model "
            "and microcode; use host-model (the default) where that is not so.",
        )
    if multiqueue:
        most = max((size for c in multiqueue for size in c.sizes), default=None)
        needed = f"at least {most}" if most else "as many as a VM has vCPUs"
        yield Setting(
            "libvirt",
            "max_queues",
            (),
            "Left unset: a VM then gets as many queues as vCPUs on kernels from 5.0, "
            f"up to 256 on 4.x, 8 on 3.x. If it is set somewhere, make it {needed}.",
        )
