# SPDX-License-Identifier: Apache-2.0
"""Place one more VM on a host, on the NUMA nodes and CPUs that Nova would choose.

:func:`nova.virt.hardware.numa_fit_instance_to_host` tries cells in this order: for a
request with PCI devices, cells with the most PCI devices first; then cells with the
most free CPUs, then with the most free memory.  A VM that needs all cells takes them in
their own order.  If Placement knows NUMA nodes, :func:`.landing_rank` orders the cells,
as in :mod:`nova_perfvm.scheduler.steering`.
"""

import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple

from nova_perfvm.diagnose import devices
from nova_perfvm.diagnose.nova_filters.numa import match_cells
from nova_perfvm.diagnose.verdicts import SchedulerSettings, offer
from nova_perfvm.facts import HostFacts, NUMACell, RequestFacts
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot.pci import PCIPool
from nova_perfvm.placement.host_schemes import nodes_offered, on_nodes
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.rules import resolve_class
from nova_perfvm.rules.cells import landing_rank
from nova_perfvm.rules.host.room import cell_memory, cells_with_room
from nova_perfvm.rules.slots import cell_cpus, free_cpus, page_given


class Share(NamedTuple):
    """The part of one NUMA node of a host that a VM takes.

    :ivar cell: the cell's ID
    :ivar cpus: the CPUs that the VM is pinned to, in order
    :ivar memory_mb: in MiB
    :ivar page_size_kb: size of the pages that Nova counts for the VM; None if Nova
        counts none
    :ivar vcpus: the number of the VM's vCPUs without a CPU of their own
    """

    cell: int
    cpus: tuple[int, ...]
    memory_mb: int
    page_size_kb: int | None = None
    vcpus: int = 0


class Arrival(NamedTuple):
    """A host after a VM has come to it, and the resources that the VM takes.

    :ivar shares: the VM's share of each NUMA node that it is on
    :ivar devices: the VM's PCI devices
    """

    view: HostView
    shares: tuple[Share, ...]
    devices: tuple[PCIPool, ...]


def shares(
    policy: Policy, request: Request, view: HostView, *, loses_limits: bool = False
) -> tuple[Share, ...] | None:
    """Return the share of the host for each cell of a request; None without room.

    Empty for VMs without a NUMA topology.

    :param loses_limits: whether the scheduler's limits do not reach nova-compute, so
        that nova-compute chooses the nodes itself
    """
    facts = request.facts
    if not facts.cells:
        return ()
    # NUMA nodes that Placement offers; None where Placement has no NUMA nodes.
    offered = nodes_offered(view, request.demand)
    steered = offered is not None and not loses_limits
    cells = [c for c in _ordered(request, view) if offered is None or c.id in offered]
    if steered:

        def landing(cell: NUMACell) -> tuple[int, int, int, tuple[int, ...]]:
            room, cards = len(cell.free_pcpus), _free_devices(view, cell)
            return landing_rank((cell.id,), room, cards, asks=bool(request.pci))

        cells.sort(key=landing)
    vm_class = resolve_class(policy, facts)
    pinned = vm_class is not None and vm_class.pinned
    size = vm_class.of_size(facts.vcpus) if vm_class and pinned else None
    host = view.facts._replace(cells=cells)
    if request.pci:
        near = devices.beside(request, view, cells, near_first=steered)
        if near is None:
            return None
        host = host._replace(cells=near)
    if size is None:
        return _of_any(facts, host.cells, view.ratios)
    return _of_class(size, facts, host)


def arrived(
    policy: Policy,
    request: Request,
    view: HostView,
    settings: SchedulerSettings,
    consumer: str,
    *,
    loses_limits: bool = False,
) -> Arrival | None:
    """Return the host after a VM has come to it; None if the host refuses the VM.

    The host's list of servers stays unchanged.

    :param request: a request that matches its class, see :func:`.rules.check_request`
    :param consumer: ID of the consumer of the VM's allocation
    :param loses_limits: see :func:`shares`
    """
    allocation = offer(policy, request, view, settings, wrong=())
    if allocation is None:
        return None
    found = shares(policy, request, view, loses_limits=loses_limits)
    if found is None:
        return None
    nodes = [share.cell for share in found]
    allocation = on_nodes(view, allocation, nodes)
    got = None
    if request.pci:
        got = devices.given(request.pci_claimed or request.pci, view, nodes)
        assert got is not None
        pools = devices.occupied(got.pools, got.devices)
        view = replace(view, compute=replace(view.compute, pci_pools=pools))
    by_cell = {share.cell: share for share in found}
    facts = view.facts._replace(
        cells=[
            _taken(cell, by_cell[cell.id]) if cell.id in by_cell else cell
            for cell in view.facts.cells
        ],
        vcpus_used=view.facts.vcpus_used + request.facts.vcpus,
        num_instances=view.facts.num_instances + 1,
        unpinned=view.facts.unpinned + (not request.facts.pinned),
    )
    view = replace(view, facts=facts).allocated(consumer, allocation)
    return Arrival(view, found, got.devices if got else ())


def _free_devices(view: HostView, cell: NUMACell) -> int:
    pools = view.compute.pci_pools or ()
    return sum(pool.count for pool in pools if pool.node == cell.id)


def _ordered(request: Request, view: HostView) -> Sequence[NUMACell]:
    cells = view.facts.cells
    if len(cells) <= len(request.facts.cells):
        return cells
    pinned = request.facts.pinned

    def key(cell: NUMACell) -> tuple[int, int, int]:
        # The CPUs of a cell that unpinned VMs use are not known.
        free = len(cell.free_pcpus) if pinned else 0
        cards = _free_devices(view, cell) if request.pci else 0
        return -cards, -free, cell.memory_usage_mb - cell.memory_mb

    return sorted(cells, key=key)


def _of_class(
    vm_class: VMClass, request: RequestFacts, host: HostFacts
) -> tuple[Share, ...] | None:
    counts = [cell_cpus(vm_class, cell) for cell in host.cells]
    memory_mb, page_size_kb = cell_memory(request)
    found: list[Share] = []
    for cell in cells_with_room(vm_class, request, host, counts):
        # Nova pins the CPU of isolated emulator threads on a VM's first NUMA node only.
        extra = 0 if found else vm_class.cell_pcpus - vm_class.cell_vcpus
        cpus = _pins(cell, free_cpus(vm_class, cell), vm_class.cell_vcpus, extra)
        found.append(_share(cell, cpus, memory_mb, page_size_kb))
        if len(found) == vm_class.cells_per_vm:
            return tuple(found)
    return None


def _of_any(
    request: RequestFacts, cells: Sequence[NUMACell], ratios: Mapping[str, float]
) -> tuple[Share, ...] | None:
    chosen = match_cells(request, cells, ratios)
    if chosen is None:
        return None
    found: list[Share] = []
    for guest, index in zip(request.cells, chosen, strict=True):
        extra = not found and request.pinned and request.emulator_threads == "isolate"
        free = cells[index].free_pcpus
        isolates = guest.cpu_thread_policy == "isolate"
        pins = _isolated if isolates else _pins
        cpus = pins(cells[index], free, guest.pcpus, extra)
        share = _share(cells[index], cpus, guest.memory_mb, guest.page_size_kb)
        found.append(share._replace(vcpus=guest.vcpus))
    return tuple(found)


def _pins(
    cell: NUMACell, free: AbstractSet[int], vcpus: int, extra: int
) -> tuple[int, ...]:
    """Return the CPUs that Nova pins for a VM, packed onto the fewest cores.

    As in ``_pack_instance_onto_cores`` of :mod:`nova.virt.hardware`.

    :param extra: CPUs for isolated emulator threads, which come last
    """
    cores = _free_cores(cell, free)
    every = [cpu for core in cores for cpu in core]
    pins = every
    for threads in range(max(map(len, cores), default=0), 0, -1):
        packed = [core[:threads] for core in cores if len(core) >= threads]
        if threads * len(packed) >= vcpus:
            pins = [cpu for core in packed for cpu in core]
            break
    pins = pins[:vcpus]
    others = (cpu for cpu in every if cpu not in pins)
    return (*pins, *itertools.islice(others, extra))


def _isolated(
    cell: NUMACell, free: AbstractSet[int], vcpus: int, extra: int
) -> tuple[int, ...]:
    """Return the CPUs that Nova pins under the thread policy ``isolate``.

    Each CPU has a core of its own; the cores' other threads, which Nova gives to no
    other VM, come last.
    """
    cores = _free_cores(cell, free)
    whole = [core for core in cores if len(core) == cell.threads_per_core][:vcpus]
    others = (core for core in cores if core not in whole)
    taken = [*whole, *itertools.islice(others, extra)]
    return (*(core[0] for core in taken), *(cpu for core in taken for cpu in core[1:]))


def _free_cores(cell: NUMACell, free: AbstractSet[int]) -> list[list[int]]:
    """Return the free CPUs of each core; a CPU without siblings is a core."""
    cores = [sorted(core & free) for core in cell.siblings if core & free]
    single = free - frozenset().union(*cell.siblings)
    return cores + [[cpu] for cpu in sorted(single)]


def _share(
    cell: NUMACell, cpus: Sequence[int], memory_mb: int, page_size_kb: int | None
) -> Share:
    """Return a VM's share of a cell, with the size of the pages that Nova counts."""
    given = (
        None
        if page_size_kb is None
        else page_given(cell, memory_mb, page_size_kb, now=True)
    )
    return Share(cell.id, tuple(cpus), memory_mb, given)


def _taken(cell: NUMACell, share: Share) -> NUMACell:
    pages_kb = share.memory_mb * 1024
    return cell._replace(
        pinned_cpus=cell.pinned_cpus | set(share.cpus),
        memory_usage_mb=cell.memory_usage_mb + share.memory_mb,
        cpu_usage=cell.cpu_usage + share.vcpus,
        mempages=tuple(
            pool._replace(used=pool.used + pages_kb // pool.size_kb)
            if pool.size_kb == share.page_size_kb
            else pool
            for pool in cell.mempages
        ),
    )
