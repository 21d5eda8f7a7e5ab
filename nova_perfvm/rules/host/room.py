# SPDX-License-Identifier: Apache-2.0
"""A VM of a pinned class finds as many NUMA nodes with room as it needs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nova_perfvm.facts import HostFacts, NUMACell, Reason, RequestFacts
from nova_perfvm.policy import VMClass
from nova_perfvm.printable import number_of
from nova_perfvm.rules.host.class_conflict import CLASS_CONFLICT
from nova_perfvm.rules.rule import HostCase, HostRule, Refusal
from nova_perfvm.rules.slots import cell_cpus, host_mode, is_foreign, memory_fits

CPUCounts = Sequence[tuple[int, int]]


def _numbers(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))


CELL_TOO_SMALL: Final = Refusal(
    "host.numa_cell_too_small",
    words=lambda d: (
        f"pCPUs per NUMA node: {_numbers(d['usable'])}; need {d['need']} on "
        f"{number_of(d['cells'], 'node')}"
    ),
    meaning="no node has the CPUs of one VM",
    advice="none: such hosts are for other classes",
)
NO_FREE_SLOT: Final = Refusal(
    "host.no_free_slot",
    words=lambda d: (
        f"free pCPUs per NUMA node: {_numbers(d['free'])}; need {d['need']} on "
        f"{number_of(d['cells'], 'node')}"
    ),
    meaning="the nodes are taken",
    advice="free a host, or add one",
)
CELL_MEMORY: Final = Refusal(
    "host.numa_cell_memory_too_small",
    words=lambda d: (
        f"MiB per NUMA node: {_numbers(d['memory_mb'])}; need {d['need']} in one (in "
        "pages of the requested size)"
    ),
    meaning="no node has the memory of one VM",
    advice="a smaller flavor",
)
NO_FREE_MEMORY: Final = Refusal(
    "host.no_free_memory",
    words=lambda d: (
        f"free MiB per NUMA node: {_numbers(d['free_mb'])}; need {d['need']} on a "
        "node with free pCPUs (in pages of the requested size)"
    ),
    meaning="CPUs are free, the memory beside them is not",
    advice="a smaller flavor, or migrate what uses it",
)


def _check(case: HostCase[VMClass]) -> Reason | None:
    missing = case.vm_class.cells_per_vm
    counts = [cell_cpus(case.vm_class, cell) for cell in case.host.cells]
    for _ in cells_with_room(case.vm_class, case.request, case.host, counts):
        missing -= 1
        if not missing:
            return None
    return _why_none(case.vm_class, case.request, case.host, counts)


def cells_with_room(
    vm_class: VMClass, request: RequestFacts, host: HostFacts, counts: CPUCounts
) -> Iterator[NUMACell]:
    """Yield the cells that have CPUs and memory for a VM now, and let it in.

    :param counts: of each cell, see :func:`nova_perfvm.rules.slots.cell_cpus`
    """
    memory_mb, page_size_kb = cell_memory(request)
    need = vm_class.cell_pcpus
    mode = host_mode(host) if vm_class.exclusive == "cell" else ""
    for cell, (_, free) in zip(host.cells, counts, strict=True):
        if (
            free >= need
            and (
                vm_class.exclusive != "cell"
                or has_cell_for_itself(vm_class, cell, mode)
            )
            and memory_fits(cell, memory_mb, page_size_kb, now=True)
        ):
            yield cell


def cell_memory(request: RequestFacts) -> tuple[int, int | None]:
    """Return the memory in MiB that a request takes of a cell, and its page size.

    Every cell of a request that is of its class asks for the same; memory may
    differ by what does not divide evenly.
    """
    cells = request.cells
    return max(cell.memory_mb for cell in cells), cells[0].page_size_kb


def has_cell_for_itself(vm_class: VMClass, cell: NUMACell, mode: str) -> bool:
    """Return whether a VM that wants its cell for itself would have it."""
    return not is_foreign(vm_class, len(cell.pinned_cpus)) and not (
        mode == "mixed" and cell.cpuset
    )


def _why_none(
    vm_class: VMClass, request: RequestFacts, host: HostFacts, counts: CPUCounts
) -> Reason:
    """Find the first of the conditions that too few cells fulfil."""
    memory_mb, page_size_kb = cell_memory(request)
    need, wanted = vm_class.cell_pcpus, vm_class.cells_per_vm
    cells = [
        (cell, free)
        for cell, (usable, free) in zip(host.cells, counts, strict=True)
        if usable >= need
    ]
    if len(cells) < wanted:
        return CELL_TOO_SMALL.because(
            usable=[usable for usable, _ in counts], need=need, cells=wanted
        )
    if vm_class.exclusive == "cell":
        mode = host_mode(host)
        cells = [pair for pair in cells if has_cell_for_itself(vm_class, pair[0], mode)]
        if len(cells) < wanted:
            return CLASS_CONFLICT.because(
                why="every NUMA node that is large enough has VMs of other classes, or "
                "CPUs for them"
            )
    if sum(free >= need for _, free in cells) < wanted:
        return NO_FREE_SLOT.because(
            free=[max(0, free) for _, free in counts], need=need, cells=wanted
        )
    fits = sum(memory_fits(c, memory_mb, page_size_kb, now=False) for c, _ in cells)
    if fits < wanted:
        return CELL_MEMORY.because(
            memory_mb=[c.memory_mb for c in host.cells], need=memory_mb
        )
    return NO_FREE_MEMORY.because(
        free_mb=[c.memory_mb - c.memory_usage_mb for c in host.cells], need=memory_mb
    )


RULE: Final = HostRule(
    130,
    _check,
    (CELL_TOO_SMALL, NO_FREE_SLOT, CELL_MEMORY, NO_FREE_MEMORY),
    vms=("pinned",),
)
