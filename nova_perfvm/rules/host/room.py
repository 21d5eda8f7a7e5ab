# SPDX-License-Identifier: Apache-2.0
"""A host has enough NUMA nodes with free CPUs and memory for a VM of a pinned class."""

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
    meaning="fewer NUMA nodes than the VM needs are large enough for its pCPUs",
    advice="none: the host suits other classes",
)
NO_FREE_SLOT: Final = Refusal(
    "host.no_free_slot",
    words=lambda d: (
        f"free pCPUs per NUMA node: {_numbers(d['free'])}; need {d['need']} on "
        f"{number_of(d['cells'], 'node')}"
    ),
    meaning="fewer NUMA nodes than the VM needs have enough free pCPUs",
    advice="migrate VMs away, or add a host",
)
CELL_MEMORY: Final = Refusal(
    "host.numa_cell_memory_too_small",
    words=lambda d: (
        f"MiB per NUMA node: {_numbers(d['memory_mb'])}; need {d['need']} on a node "
        "with enough pCPUs (in pages of the requested size)"
    ),
    meaning="fewer NUMA nodes than the VM needs are large enough for its memory",
    advice="a smaller flavor",
)
NO_FREE_MEMORY: Final = Refusal(
    "host.no_free_memory",
    words=lambda d: (
        f"free MiB per NUMA node: {_numbers(d['free_mb'])}; need {d['need']} on a "
        "node with free pCPUs (in pages of the requested size)"
    ),
    meaning="NUMA nodes with free pCPUs lack free memory",
    advice="a smaller flavor, or migrate VMs that use the memory",
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
    """Yield the NUMA nodes with free CPUs and memory, for ``exclusive: cell`` unshared.

    :param counts: usable and free CPUs of each NUMA node, see
        :func:`nova_perfvm.rules.slots.cell_cpus`
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
    """Return the most memory (MiB) that a NUMA node of a request asks for.

    Also return ``page_size_kb`` of the first NUMA node.  ValueError without NUMA nodes.
    """
    cells = request.cells
    return max(cell.memory_mb for cell in cells), cells[0].page_size_kb


def has_cell_for_itself(vm_class: VMClass, cell: NUMACell, mode: str) -> bool:
    """Return whether all pins of a NUMA node can be the class's, and no CPU is shared.

    :param mode: the host's mode; only in ``mixed`` do shared CPUs count
    """
    return not is_foreign(vm_class, len(cell.pinned_cpus)) and not (
        mode == "mixed" and cell.cpuset
    )


def _why_none(
    vm_class: VMClass, request: RequestFacts, host: HostFacts, counts: CPUCounts
) -> Reason:
    """Return the reason for the first condition that too few NUMA nodes fulfil.

    Conditions in order: size, other classes, free CPUs, memory size, free memory.
    """
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
