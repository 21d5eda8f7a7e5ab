# SPDX-License-Identifier: Apache-2.0
"""How much of a host's memory VMs get, and in which pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nova_perfvm.generate.hosts.cpus import CPUSets
from nova_perfvm.generate.hosts.errors import HostConfigError
from nova_perfvm.generate.hosts.request import HostRequest
from nova_perfvm.generate.hosts.topology import Node
from nova_perfvm.policy import PAGE_SIZES_KB, VMClass, even_share


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """Memory of one NUMA node.

    :ivar node: the node's number
    :ivar vms_mb: what VMs may have, in MiB; None if the node's memory is unknown
    :ivar reserved_mb: what is kept for the host, in MiB
    :ivar page_kb: size of the huge pages that VMs get, in KiB; None for none
    """

    node: int
    vms_mb: int | None
    reserved_mb: int
    page_kb: int | None

    @property
    def pages(self) -> int | None:
        """How many huge pages to set aside, None if that is not known."""
        if self.page_kb is None or self.vms_mb is None:
            return None
        return self.vms_mb * 1024 // self.page_kb


def divide_memory(
    request: HostRequest, cpus: CPUSets, classes: Sequence[VMClass]
) -> tuple[NodeMemory, ...]:
    """Divide each node's memory between the host and VMs.

    :param classes: those that the host serves
    :raises HostConfigError: when classes want different pages of the same
        memory, or a node has less than one page
    """
    pinned = [vm_class for vm_class in classes if vm_class.pinned]
    shared = [vm_class for vm_class in classes if not vm_class.pinned]
    if request.mode == "mixed":
        sizes = {True: _page_kb(pinned), False: _page_kb(shared)}
    else:
        size = _page_kb(classes)
        sizes = {True: size, False: size}
    return tuple(
        _node_memory(
            node, request.reserve_memory_gb, sizes[not node.cpus & cpus.shared]
        )
        for node in request.topology.nodes
    )


def _page_kb(classes: Iterable[VMClass]) -> int | None:
    wanted = {vm_class.name: _huge_kb(vm_class) for vm_class in classes}
    if len(set(wanted.values())) > 1:
        listed = ", ".join(
            f"{name}: {'small' if size is None else f'{size // 1024} MiB'}"
            for name, size in wanted.items()
        )
        raise HostConfigError(
            f"classes that share memory want pages of different sizes ({listed}), and "
            "huge pages are set aside when the host boots: give them the same "
            "mem_page_size, or hosts of their own"
        )
    return next(iter(wanted.values()), None)


def _huge_kb(vm_class: VMClass) -> int | None:
    """Return the size of the huge pages that a class wants; ``large`` is any."""
    if vm_class.mem_page_size is None or vm_class.mem_page_size == "small":
        return None
    if vm_class.mem_page_size == "large":
        # 1 GiB pages have the fewest TLB misses, but each node of a VM takes whole
        # ones, or none.
        sizes = vm_class.flavors.sizes if vm_class.flavors else ()
        shares = [even_share(size.memory_gb, vm_class.cells_per_vm) for size in sizes]
        return PAGE_SIZES_KB["2MB" if None in shares else "1GB"]
    return PAGE_SIZES_KB[vm_class.mem_page_size]


def _node_memory(node: Node, reserve_gb: int, page_kb: int | None) -> NodeMemory:
    reserved_mb = reserve_gb * 1024
    if node.memory_mb is None:
        return NodeMemory(node.id, None, reserved_mb, page_kb)
    if node.memory_mb == 0:
        return NodeMemory(node.id, 0, 0, page_kb)
    vms_mb = node.memory_mb - reserved_mb
    if page_kb is not None:
        # What does not fill a page stays with the host.
        vms_mb -= vms_mb % (page_kb // 1024)
        if vms_mb == 0:
            raise HostConfigError(
                f"NUMA node {node.id} has no room for a page of {page_kb // 1024} MiB "
                f"beside {reserve_gb} GiB for the host: lower --reserve-memory-gb"
            )
        reserved_mb = node.memory_mb - vms_mb
    return NodeMemory(node.id, vms_mb, reserved_mb, page_kb)
