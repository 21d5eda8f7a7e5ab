# SPDX-License-Identifier: Apache-2.0
"""Room for VMs of a pinned class: shares of NUMA nodes, and slots of a host.

A *slot* is room for one VM on one host.  A VM of a class with ``numa_nodes: k``
takes one *share* of each of k cells.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final, NamedTuple

from nova_perfvm import constants as const
from nova_perfvm.facts import HostFacts, NUMACell, PagePool, RequestCell
from nova_perfvm.policy import PAGE_SIZES_KB, FlavorSize, VMClass, groups_of

_NO_LIMIT: Final[Mapping[str, float]] = {}


class VMCount(NamedTuple):
    """The number of VMs of a class, estimated from the number of pinned CPUs.

    :ivar least: lowest possible number of VMs
    :ivar most: highest possible number of VMs
    :ivar vcpus: lowest possible number of their vCPUs; where the pins are no sum of
        the class's sizes, the vCPUs of ``least`` VMs of the largest size
    """

    least: int
    most: int
    vcpus: int


def host_mode(host: HostFacts) -> str:
    """Return the host mode: how a host divides its CPUs.

    ``dedicated``: all CPUs may be pinned; ``shared``: all CPUs are shared; ``mixed``:
    dedicated and shared CPUs, disjoint; ``open``: no cpu set is configured, and each
    CPU may be pinned or shared; ``none``: the host reports no CPUs.
    """
    shared = dedicated = overlap = False
    for cell in host.cells:
        if cell.pcpuset:
            dedicated = True
            # Nova refuses overlapping cpu sets, so a common CPU means that neither is
            # configured.
            overlap = overlap or not cell.pcpuset.isdisjoint(cell.cpuset)
        if cell.cpuset:
            shared = True
    if overlap:
        return "open"
    if shared and dedicated:
        return "mixed"
    if dedicated:
        return "dedicated"
    return "shared" if shared else "none"


def cell_cpus(vm_class: VMClass, cell: NUMACell) -> tuple[int, int]:
    """Return how many CPUs (or cores, with ``smt: cores``) VMs of a class may own.

    :returns: the usable and the free CPUs of the NUMA node: with the thread policy
        ``require``, those with siblings; else free is below 0 where more CPUs are
        pinned than are usable
    """
    pins = len(cell.pinned_cpus)
    if vm_class.smt == "cores" and _has_threads(cell):
        usable, free = cell.count_cores()
        # Each pinned CPU counts as a core, even where Nova pinned both threads of one.
        return usable, min(free, usable - pins)
    if vm_class.cpu_thread_policy == "require":
        every, free_ones = cell.pcpuset, cell.free_pcpus
        return _beside_siblings(vm_class, cell, every), _beside_siblings(
            vm_class, cell, free_ones
        )
    usable = len(cell.pcpuset)
    return usable, usable - pins


def _beside_siblings(vm_class: VMClass, cell: NUMACell, cpus: AbstractSet[int]) -> int:
    """Count the CPUs whose sibling is in `cpus`, too, and a CPU for QEMU's threads.

    The thread policy ``require`` takes no other CPUs for vCPUs: none without SMT.
    """
    beside = sum(n for core in cell.siblings if (n := len(core & cpus)) > 1)
    extra = vm_class.cell_pcpus - vm_class.cell_vcpus
    # Nova pins isolated emulator threads on any CPU.
    return beside + min(extra, len(cpus) - beside)


def cell_takes(vm_class: VMClass, cell: NUMACell) -> int:
    """Return how many CPUs of a NUMA node a VM of a class keeps from others."""
    return vm_class.cell_takes(cell.threads_per_core)


def free_cpus(vm_class: VMClass, cell: NUMACell) -> AbstractSet[int]:
    """Return the IDs of the free CPUs that VMs of a class may own.

    With ``smt: cores``, one thread of each core without pinned threads.
    """
    free = cell.free_pcpus
    if vm_class.smt != "cores":
        return free
    cores = [c & free for c in cell.siblings if c.isdisjoint(cell.pinned_cpus)]
    single = free - frozenset().union(*cell.siblings)
    return single | {min(core) for core in cores if core}


def is_foreign(vm_class: VMClass, pins: int) -> bool:
    """Return whether VMs of this class alone cannot make up the pins on a NUMA node.

    The pins are foreign if they are no sum of the class's sizes, former sizes
    included.  Pins of other VMs that happen to be such a sum go unnoticed.

    :param pins: number of pinned CPUs on the NUMA node
    """
    if pins % vm_class.cell_pcpus == 0:
        return False
    shares = vm_class.cell_sizes
    if vm_class.cells_per_vm > 1 and vm_class.emulator_threads == "isolate":
        # Nova pins the emulator threads' CPU on a VM's first NUMA node only.
        shares += tuple(share - 1 for share in shares)
    return _terms(shares, pins) is None


def no_sum(sizes: Sequence[int]) -> str:
    """Return "no multiple of 20" or "no sum of 18 and 20", for use in messages."""
    if len(sizes) == 1:
        return f"no multiple of {sizes[0]}"
    return f"no sum of {', '.join(map(str, sizes[:-1]))} and {sizes[-1]}"


def count_vms(vm_class: VMClass, host: HostFacts) -> VMCount:
    """Count the VMs of a class from the number of a host's pinned CPUs, rounded up.

    With former sizes, several counts can be possible: 20 pins are one VM if the class
    has the sizes 18 and 20, but one VM or two if it has 10 and 20.  The pins are all
    taken for the class's, even where VMs of other classes own some.
    """
    pins = sum(len(cell.pinned_cpus) for cell in host.cells)
    if not vm_class.former_vcpus:
        count = -(-pins // vm_class.vm_pcpus)
        return VMCount(count, count, count * (vm_class.vcpus or 0))
    extra = 1 if vm_class.emulator_threads == "isolate" else 0
    sizes = tuple(size + extra for size in vm_class.sizes)
    found = _terms(sizes, pins)
    if found is None:
        least = -(-pins // max(sizes))
        return VMCount(least, -(-pins // min(sizes)), least * max(vm_class.sizes))
    return VMCount(*found, pins - extra * found[1])


@lru_cache(maxsize=4096)
def _terms(sizes: tuple[int, ...], total: int) -> tuple[int, int] | None:
    """Return the fewest and the most terms of ``sizes`` that add up to ``total``.

    None if no sum of the sizes is the total.
    """
    found: list[tuple[int, int] | None] = [(0, 0)]
    for part in range(1, total + 1):
        rests = [found[part - size] for size in sizes if size <= part]
        ways = [rest for rest in rests if rest is not None]
        found.append(
            (1 + min(w[0] for w in ways), 1 + max(w[1] for w in ways)) if ways else None
        )
    return found[total]


def _has_threads(cell: NUMACell) -> bool:
    """Return whether two CPUs of ``pcpuset`` may share a core, without a loop.

    Nova lists a sibling set for each core with a CPU in either cpu set.  If every CPU
    of the node is in ``pcpuset``, equal numbers of cores and CPUs mean no SMT.
    """
    if not cell.siblings:
        return False
    one_kind = not cell.cpuset or cell.cpuset == cell.pcpuset
    return not (one_kind and len(cell.siblings) == len(cell.pcpuset))


def node_fits(
    cell: NUMACell,
    guest: RequestCell,
    extra: int = 0,
    *,
    ratios: Mapping[str, float] = _NO_LIMIT,
) -> bool:
    """Return whether Nova would put a NUMA node of a VM on this NUMA node of a host.

    Follows ``_numa_fit_instance_cell`` of :mod:`nova.virt.hardware`.

    :param guest: the VM's NUMA node
    :param extra: additional CPUs for isolated emulator threads
    :param ratios: allocation ratios by resource class; they limit unpinned VMs only
    """
    if not guest.pcpus:
        used = cell.memory_usage_mb + guest.memory_mb
        if used > cell.memory_mb * ratios.get("MEMORY_MB", math.inf):
            return False
        if cell.cpu_usage + guest.vcpus > len(cell.cpuset) * ratios.get(
            const.VCPU, math.inf
        ):
            return False
    own = guest.pcpus + extra
    if own > len(cell.free_pcpus) or guest.vcpus > len(cell.cpuset):
        return False
    if guest.pcpus and not _threads_fit(cell, guest, extra):
        return False
    size_kb = guest.page_size_kb
    # Only an unpinned VM without a page size may overcommit the node's memory.
    now = bool(guest.pcpus or size_kb is not None)
    # Where the host reports page pools, Nova counts pages, not memory_usage.
    cell = cell._replace(memory_usage_mb=0) if cell.mempages else cell
    return memory_fits(cell, guest.memory_mb, size_kb, now=now)


def _threads_fit(cell: NUMACell, guest: RequestCell, extra: int) -> bool:
    """Return whether the free threads of the cores satisfy the thread policy."""
    free = cell.free_pcpus
    cores = [len(core & free) for core in cell.siblings]
    threads = cell.threads_per_core
    if guest.cpu_thread_policy == "require":
        # Nova packs the same number of threads onto each core.
        return any(
            number * sum(core >= number for core in cores) >= guest.pcpus
            for number in range(2, threads + 1)
        )
    if guest.cpu_thread_policy == "isolate" and threads > 1:
        # With cpu_dedicated_set Nova refuses ``isolate`` on cores with several threads.
        whole = sum(core == threads for core in cores)
        left = sum(map(bool, cores)) - guest.pcpus
        return cell.pcpuset == cell.cpuset and whole >= guest.pcpus and left >= extra
    return True


def memory_fits(
    cell: NUMACell, memory_mb: int, page_size_kb: int | None, *, now: bool
) -> bool:
    """Return whether a NUMA node has the memory, in pages of the requested size.

    Stricter than Nova in one point: the node's memory has to suffice, too.  Nova gives
    free huge pages also of a node whose small pages unpinned VMs overcommit.

    :param memory_mb: the VM's memory on this NUMA node, in MiB
    :param page_size_kb: see :class:`nova_perfvm.facts.RequestCell`; if not None, a node
        without page pools never has the memory
    :param now: whether memory in use counts; False to judge the node as if empty
    """
    left = cell.memory_mb - (cell.memory_usage_mb if now else 0)
    if left < memory_mb:
        return False
    if page_size_kb is None:
        # Small pages back the VM; a node without page pools passes.
        smallest = min(cell.mempages, default=None)
        return smallest is None or _pool_fits(smallest, memory_mb, now=now)
    return page_given(cell, memory_mb, page_size_kb, now=now) is not None


def page_given(
    cell: NUMACell, memory_mb: int, page_size_kb: int, *, now: bool
) -> int | None:
    """Return the size in KiB of the pages that Nova gives a VM; None if none suffice.

    The largest, as in ``_numa_cell_supports_pagesize_request`` of nova.virt.hardware.

    :param page_size_kb: the requested size, see :class:`nova_perfvm.facts.RequestCell`
    :param now: see :func:`memory_fits`
    """
    pools = reversed(_pools(cell, page_size_kb))
    sizes = (pool.size_kb for pool in pools if _pool_fits(pool, memory_mb, now=now))
    return next(sizes, None)


def _pools(cell: NUMACell, page_size_kb: int) -> Sequence[PagePool]:
    """Return the page pools that a request may take from, the smallest pages first."""
    pools = sorted(cell.mempages)
    if page_size_kb == const.PAGE_SMALL:
        return pools[:1]
    if page_size_kb == const.PAGE_LARGE:
        return pools[1:]
    if page_size_kb == const.PAGE_ANY:
        return pools
    return [pool for pool in pools if pool.size_kb == page_size_kb]


def _pool_fits(pool: PagePool, memory_mb: int, *, now: bool) -> bool:
    """Return whether whole pages of a pool, free ones if `now`, make up the memory."""
    memory_kb = memory_mb * 1024
    left = pool.total - pool.used if now else pool.total
    return left * pool.size_kb >= memory_kb and memory_kb % pool.size_kb == 0


def host_slots(
    vm_class: VMClass, cells: Iterable[NUMACell], memory_mb: int | None = None
) -> int:
    """Count the VMs of a class that fit an empty host, at most ``max_per_host``.

    :param memory_mb: memory of each VM in MiB; None for that of the class's smallest
        flavor, or, if the class declares no flavors, 1 MiB where the host reports
        memory and 0 where it does not
    """
    cells = tuple(cells)
    pages = vm_class.mem_page_size
    if memory_mb is None and not (memory_mb := smallest_memory_mb(vm_class)):
        memory_mb, pages = int(any(cell.memory_mb > 0 for cell in cells)), None
    share_mb = -(-memory_mb // vm_class.cells_per_vm)
    shares = []
    for cell in cells:
        count = cell_cpus(vm_class, cell)[0] // cell_takes(vm_class, cell)
        if share_mb:
            # Memory reserved for the host makes the figure of an empty node negative.
            count = min(count, max(0, cell.memory_mb) // share_mb)
            if pages:
                count = int(min(count, _by_pages(pages, cell, share_mb)))
        shares.append(count)
    return vm_class.capped(groups_of(shares, vm_class.cells_per_vm))


def smallest_size(vm_class: VMClass) -> FlavorSize | None:
    """Return the class's flavor size with the least memory; None without flavors."""
    if vm_class.flavors is None:
        return None
    return min(
        vm_class.flavors.sizes,
        key=lambda size: (size.memory_gb, size.root_gb),
        default=None,
    )


def smallest_memory_mb(vm_class: VMClass) -> int:
    """Return the memory of a class's smallest flavor in MiB, 0 without flavors."""
    size = smallest_size(vm_class)
    return size.memory_gb * 1024 if size else 0


def _by_pages(asked: str, cell: NUMACell, share_mb: int) -> float:
    """Count the shares of an empty node's memory that whole pages make up.

    Infinite without a pool of such pages: libvirt reports pools of all sizes, and no
    API of Nova shows those of huge pages.

    :param asked: ``mem_page_size`` of a class
    """
    pools = _pools(cell, const.PAGE_KINDS.get(asked) or PAGE_SIZES_KB[asked])
    counts = [
        pool.total * pool.size_kb // (share_mb * 1024)
        for pool in pools
        if share_mb * 1024 % pool.size_kb == 0
    ]
    return sum(counts) if pools else math.inf
