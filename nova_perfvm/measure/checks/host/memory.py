# SPDX-License-Identifier: Apache-2.0
"""A pinned VM's memory is complete, on the node of its CPUs, in the promised pages.

VMware's article puts the gain of local memory at 8 to 17 %, and reached 99.2 % local
memory with unpinned VMs: 99 % is feasible.  In a VM with several NUMA nodes the memory
of each node has to be local to the node's CPUs.

The host places memory on first use, so unused memory cannot be judged.  A guest's
kernel lets a test use nine tenths.  Memory that the guest frees returns to the host:
Nova makes libvirt set freePageReporting.
"""

from collections import Counter

from nova_perfvm.cpuset import format_cpus
from nova_perfvm.findings import Level
from nova_perfvm.measure.checks.check import Cause, Seen, vm_check
from nova_perfvm.measure.checks.host_subject import HostSubject
from nova_perfvm.measure.observed import cgroups, processes
from nova_perfvm.measure.observed.cpus import NODE
from nova_perfvm.measure.observed.domains import Domain
from nova_perfvm.policy import PAGE_SIZES_KB

LEAST_LOCAL = 0.99
# Allowance for QEMU's own memory on a node: heap, caches of the Ceph client.
_OWN_KB = 2**20
_LEAST_USED = 0.90
_SMALL_KB = 64
# QEMU allocates huge pages at start, except pages reserved for hotplug.
_LEAST_HUGE = 0.99
_THP = "/sys/kernel/mm/transparent_hugepage/enabled"
# QEMU's own idle pages may be in swap.
_MOST_SWAPPED_KB = 16 * 1024


def _gib(kb: int) -> str:
    return f"{kb / 2**20:.2f} GiB"


@vm_check(
    35,
    "hypervisor.numatune",
    source=f"{NODE}/node*/cpulist",
    remedy="openstack server reboot --hard {}; if it stays so, its flavor lacks "
    "hw:cpu_policy=dedicated or hw:numa_nodes: resize it",
)
def numatune(host: HostSubject, domain: Domain) -> Seen:
    """Memory of a pinned VM is bound to its node."""
    parts = {"memory": (domain.memory, domain.pinned_cpus)}
    for cell, cpus in domain.cell_cpus.items():
        # A node without a memnode element uses the binding of the whole memory.
        binding = domain.memnodes.get(cell, domain.memory)
        parts[f"memory of its node {cell}"] = binding, cpus
    for name, (binding, cpus) in parts.items():
        nodes = host.nodes_of(cpus)
        if binding is None:
            yield Level.FAILURE, f"{name} is bound nowhere"
            continue
        shown = f"{name}: {binding.mode}, from node {format_cpus(binding.nodes)}"
        if nodes and binding.mode == "strict" and binding.nodes == nodes:
            yield Level.OK, shown
        else:
            yield Level.FAILURE, f"{shown}; CPUs on {format_cpus(nodes) or 'none'}"


@vm_check(
    60,
    "hypervisor.memory_local",
    title=f"At least {LEAST_LOCAL:.0%} of a pinned VM's memory is on its node",
    source="/proc/PID/numa_maps",
    remedy="look at hypervisor.numatune, and at the free memory of its node; then "
    "openstack server reboot --hard {}, or while it runs migratepages PID FROM TO "
    "(of package numactl; huge pages need as many free ones on TO)",
)
def memory_local(host: HostSubject, domain: Domain) -> Seen:
    """Compare the VM's memory on its own nodes with its memory on all nodes."""
    nodes = host.nodes_of(domain.pinned_cpus)
    if not nodes:
        yield Level.UNKNOWN, "the VM is pinned to no CPU of a NUMA node"
        return
    memory = processes.memory(host.collected, host.process_of(domain)).by_node
    near = {node: memory.get(node, 0) for node in nodes}
    if len(domain.cells) > 1:
        most: Counter[int] = Counter()
        for cell, cpus in domain.cell_cpus.items():
            most.update(dict.fromkeys(host.nodes_of(cpus), domain.cells_kb[cell]))
        for node, kb in most.items():
            near[node] = min(near[node], kb + _OWN_KB)
    share = sum(near.values()) / sum(memory.values())
    found = sorted(memory.items())
    listed = ", ".join(f"{_gib(kb)} on node {node}" for node, kb in found)
    # Round down: never show 98.999 % as 99 %.
    shown = f"{int(share * 10000) / 100:.2f} % on node {format_cpus(nodes)}: {listed}"
    yield Level.OK if share >= LEAST_LOCAL else Level.FAILURE, shown


@vm_check(
    62,
    "hypervisor.memory_whole",
    source=f"/proc/PID/numa_maps, memory.events of {cgroups.ROOT}",
    remedy="virsh setmem {}, MemoryHigh= and MemoryMax= of its unit and slices, or "
    "huge pages for its class",
)
def memory_whole(host: HostSubject, domain: Domain) -> Seen:
    """All memory of a VM is there, and in use."""
    collected, process = host.collected, host.process_of(domain)
    of = f"of {_gib(domain.memory_kb)}"
    if domain.current_kb < domain.memory_kb:
        yield Level.FAILURE, f"its balloon leaves {_gib(domain.current_kb)} {of}"
    used_kb = sum(processes.memory(collected, process).by_node.values())
    used = f"{_gib(used_kb)} {of} are in use"
    if used_kb >= _LEAST_USED * domain.memory_kb:
        yield Level.OK, used
    else:
        cure = "stress-ng --vm 1 --vm-bytes 95% --vm-keep"
        yield Level.UNKNOWN, f"{used}: hold all in the guest meanwhile: {cure}"
    for group in cgroups.groups(collected, process.path, "memory"):
        path = f"{group.directory}/memory.events"
        for name in ("high", "max") if group.version == 2 else ():
            if times := cgroups.grown(collected, path, name)[0]:
                yield Level.FAILURE, f"{path}: {name} {times} times between the looks"


@vm_check(
    65,
    "hypervisor.huge_pages",
    source="/proc/PID/numa_maps",
    remedy="reserve enough on its node at boot (hugepagesz= and hugepages= of "
    "nova-perfvm host config), then openstack server reboot --hard {}; if it asks "
    "for none, resize it to a flavor with hw:mem_page_size",
)
def huge_pages(host: HostSubject, domain: Domain) -> Seen:
    """Huge pages that a VM asks for are there."""
    vm_class = host.class_of(domain)
    wanted = vm_class.mem_page_size if vm_class else None
    if not domain.page_sizes_kb and wanted in {"large", "2MB", "1GB"}:
        yield Level.FAILURE, f"it asks for none, and its class promises {wanted} pages"
        return
    if not domain.page_sizes_kb:
        yield Cause.NOTHING_TO_JUDGE, "neither it nor its class asks for huge pages"
        return
    by_page = processes.memory(host.collected, host.process_of(domain)).by_page
    # The class's page size outranks the size that an image or old flavor asked for.
    of_class = PAGE_SIZES_KB.get(wanted or "")
    sizes = [of_class] if of_class else [size for size in domain.page_sizes_kb if size]
    counted = sizes or [size for size in by_page if size > _SMALL_KB]
    # Memory of QEMU's process, not pages that the host has reserved.
    huge_kb = sum(by_page.get(size, 0) for size in counted)
    asked = " or ".join(f"{size} KiB" for size in sizes) or "the host's default size"
    found = sorted(by_page.items())
    listed = ", ".join(f"{_gib(kb)} of {size} KiB" for size, kb in found)
    shown = f"of {_gib(domain.memory_kb)}, in pages of {asked}: {listed}"
    holds = huge_kb >= _LEAST_HUGE * domain.memory_kb
    yield Level.OK if holds else Level.FAILURE, shown


@vm_check(
    66,
    "hypervisor.swap",
    source=f"/proc/PID/status, VmSwap; {_THP}",
    remedy="swapoff -a, with enough memory free, and a larger [DEFAULT]"
    f"reserved_host_memory_mb in nova.conf; echo madvise > {_THP}",
)
def swap(host: HostSubject, domain: Domain) -> Seen:
    """No memory of a VM is in swap, nor all of it in small pages."""
    swapped_kb = processes.swapped_kb(host.collected, host.process_of(domain))
    if swapped_kb:
        level = Level.FAILURE if swapped_kb > _MOST_SWAPPED_KB else Level.WARNING
        yield level, f"{swapped_kb / 1024:.0f} MiB are in swap"
    if "[never]" in host.collected.files.get(_THP, "") and not domain.page_sizes_kb:
        yield Level.WARNING, "4 KiB pages: it asks for no others, and THP is off"
