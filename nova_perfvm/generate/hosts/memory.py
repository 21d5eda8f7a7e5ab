# SPDX-License-Identifier: Apache-2.0
"""Divide a host's memory between VMs and the host, and choose page sizes."""

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
    :ivar vms_mb: memory for VMs in MiB; None if the node's memory is unknown
    :ivar reserved_mb: memory for the host in MiB
    :ivar page_kb: size of the VMs' huge pages in KiB; None for small pages
    """

    node: int
    vms_mb: int | None
    reserved_mb: int
    page_kb: int | None

    @property
    def pages(self) -> int | None:
        """Number of huge pages to set aside; None if unknown, or for small pages."""
        if self.page_kb is None or self.vms_mb is None:
            return None
        return self.vms_mb * 1024 // self.page_kb


def divide_memory(
    request: HostRequest, cpus: CPUSets, classes: Sequence[VMClass]
) -> tuple[NodeMemory, ...]:
    """Divide each node's memory between the host and VMs.

    :param classes: the classes that the host serves
    :raises HostConfigError: when classes want pages of different sizes in the same
        memory, or a node with memory has less than one page for VMs
    """
    shares = []
    for node in request.topology.nodes:
        mine = classes
        if request.mode == "mixed":
            shared = bool(node.cpus & cpus.shared)
            mine = [vm_class for vm_class in classes if vm_class.pinned != shared]
        shares.append(_node_memory(node, request.reserve_memory_gb, _page_kb(mine)))
    return tuple(shares)


def _page_kb(classes: Iterable[VMClass]) -> int | None:
    wanted = {vm_class.name: _huge_kb(vm_class) for vm_class in classes}
    sizes = set(wanted.values())
    if len(sizes) > 1:
        raise HostConfigError(
            f"classes {' and '.join(wanted)} share memory and want pages of different "
            "sizes, but the host sets pages aside when it boots: give the classes the "
            "same mem_page_size, or hosts of their own"
        )
    return sizes.pop() if sizes else None


def _huge_kb(vm_class: VMClass) -> int | None:
    """Return the KiB of a class's huge pages, chosen for ``large``; None for small."""
    if vm_class.mem_page_size is None or vm_class.mem_page_size == "small":
        return None
    if vm_class.mem_page_size == "large":
        # 1 GiB pages have the fewest TLB misses, but a VM's memory on each of its nodes
        # has to be a whole number of pages.
        sizes = vm_class.flavors.sizes if vm_class.flavors else ()
        shares = [even_share(size.memory_gb, vm_class.cells_per_vm) for size in sizes]
        return PAGE_SIZES_KB["2MB" if None in shares else "1GB"]
    return PAGE_SIZES_KB[vm_class.mem_page_size]


def _node_memory(node: Node, reserve_gb: int, page_kb: int | None) -> NodeMemory:
    if not node.memory_mb:
        # Unknown memory: the host keeps its reserve.  A node without memory has none.
        kept_mb = reserve_gb * 1024 if node.memory_mb is None else 0
        return NodeMemory(node.id, node.memory_mb, kept_mb, page_kb)
    vms_mb = node.memory_mb - reserve_gb * 1024
    if page_kb is not None:
        # The host keeps the rest that does not fill a page.
        vms_mb -= vms_mb % (page_kb // 1024)
        if vms_mb == 0:
            raise HostConfigError(
                f"NUMA node {node.id} has no room for a page of {page_kb // 1024} MiB "
                f"beside {reserve_gb} GiB for the host: lower --reserve-memory-gb"
            )
    return NodeMemory(node.id, vms_mb, node.memory_mb - vms_mb, page_kb)
