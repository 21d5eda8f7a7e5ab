# SPDX-License-Identifier: Apache-2.0
"""Guess the NUMA nodes of a host from the figures that the APIs show.

The APIs show the number and size of the NUMA nodes, the numbers of dedicated and shared
CPUs in Placement, and each pinned server's NUMA node and CPUs.  So the guess is right
about the number of NUMA nodes and about CPUs that servers own; the IDs of the other
CPUs are made up.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count, islice

from nova_perfvm.facts.snapshot.model import HostCell
from nova_perfvm.facts.snapshot.resources import Server
from nova_perfvm.policy import HostShape


def assume_cells(
    shape: HostShape,
    pcpus: int,
    vcpus: int,
    memory_mb: int,
    servers: Iterable[Server] = (),
) -> tuple[HostCell, ...]:
    """Return the NUMA nodes of a host, assuming that all have the same hardware.

    A host with PCPU and VCPU has each kind on NUMA nodes of its own, if the totals
    divide so, as ``host config --mode mixed`` makes it: a dedicated node then has one
    thread of each core or all threads, a shared node all.  Other totals are spread
    evenly over all nodes.  A host with VCPU alone has no cpu set, so each CPU may be of
    either kind.

    :param pcpus: the host's total of PCPU in Placement
    :param vcpus: the host's total of VCPU in Placement
    :param memory_mb: memory of the whole host in MiB
    :param servers: the host's servers; dedicated CPUs get the IDs of the CPUs that
        these own, but are not marked as pinned
    """
    dedicated, shared = _divided(shape, pcpus, vcpus)
    pins: dict[int, set[int]] = defaultdict(set)
    for server in servers:
        for cell in server.cells or ():
            if cell.host_node is not None:
                pins[cell.host_node].update(cell.cpu_pinning.values())
    taken = set().union(*pins.values())
    made_up = [_numbers(shape, taken, index) for index in range(shape.cells)]
    cells = []
    for index in range(shape.cells):
        known = sorted(pins[index])
        own = known + [
            next(made_up[index]) for _ in range(dedicated[index] - len(known))
        ]
        others = (
            own if not pcpus else [next(made_up[index]) for _ in range(shared[index])]
        )
        cells.append(
            HostCell(
                id=index,
                cpuset=frozenset(others),
                pcpuset=frozenset(own),
                memory_mb=memory_mb // shape.cells,
                siblings=_siblings(shape, own),
            )
        )
    return tuple(cells)


def _divided(shape: HostShape, pcpus: int, vcpus: int) -> tuple[list[int], list[int]]:
    """Return the numbers of dedicated and of shared CPUs of each NUMA node."""
    cells = shape.cells
    if not pcpus:
        return _evenly(cells, vcpus), _evenly(cells, vcpus)
    some = _dedicated_cells(shape, pcpus, vcpus) if vcpus else 0
    if not some:
        return _evenly(cells, pcpus), _evenly(cells, vcpus)
    return (
        _evenly(some, pcpus) + [0] * (cells - some),
        [0] * some + _evenly(cells - some, vcpus),
    )


def _dedicated_cells(shape: HostShape, pcpus: int, vcpus: int) -> int:
    """Count the dedicated NUMA nodes if each node has one kind of CPUs; else 0."""
    # Shared nodes give all threads; dedicated nodes give one thread of a core, or all.
    for threads in (1, shape.threads):
        for some in range(1, shape.cells):
            shared = shape.cells - some
            if pcpus * shared * shape.threads == vcpus * some * threads:
                return some
    return 0


def _evenly(cells: int, cpus: int) -> list[int]:
    return [cpus // cells + (index < cpus % cells) for index in range(cells)]


def _numbers(shape: HostShape, taken: set[int], index: int) -> Iterator[int]:
    """Yield IDs without end for the unowned CPUs of the NUMA node with this index."""
    # The node's own IDs, as the kernel counts without SMT; when these run out, IDs
    # above those of all CPUs.
    per_cell = shape.cores * shape.threads
    first = index * per_cell
    yield from (n for n in range(first, first + per_cell) if n not in taken)
    first = max({shape.cpus, *(n + 1 for n in taken)})
    yield from count(first + index, shape.cells)


def _siblings(shape: HostShape, own: list[int]) -> tuple[frozenset[int], ...]:
    """Return sibling sets of CPUs `own`; () without SMT, or if `own` lacks threads."""
    if shape.threads == 1 or len(own) != shape.cores * shape.threads:
        return ()
    cpus = iter(own)
    cores = range(shape.cores)
    return tuple(frozenset(islice(cpus, shape.threads)) for _ in cores)
