# SPDX-License-Identifier: Apache-2.0
"""NUMATopologyFilter: the NUMA nodes of a request on the NUMA nodes of a host."""

from collections.abc import Iterator, Mapping, Sequence

from nova_perfvm import constants as const
from nova_perfvm.diagnose import devices
from nova_perfvm.diagnose.nova_filters.case import FilterCase
from nova_perfvm.facts import NUMACell, Reason, RequestFacts
from nova_perfvm.facts.snapshot import UNKNOWN
from nova_perfvm.placement.host_schemes import nodes_offered
from nova_perfvm.rules.cells import unnamed
from nova_perfvm.rules.slots import node_fits


def topology(case: FilterCase) -> Iterator[Reason]:
    """Yield a reason if a host lacks cells, or PCI devices near them, for a request.

    Every VM that asks for cells is judged, whatever its class, also on hosts that the
    policy does not manage.
    """
    request, view = case.request, case.view
    if not request.facts.cells or view.compute.cells_source == UNKNOWN:
        return
    # The nodes that the filter may use; None for all nodes.
    offered = None
    if case.offered:
        offered = nodes_offered(view, request.demand)
    cells = [c for c in view.facts.cells if offered is None or c.id in offered]
    if match_cells(request.facts, cells, view.ratios) is None:
        yield no_cells(request.facts)
        return
    lacking = tuple(devices.reasons(request, view, cells))
    yield from lacking
    if not lacking and offered is not None:
        told = view.compute.cells
        physnets = {c.id: c.physnets for c in told if c.physnets is not None}
        if found := unnamed(physnets, offered):
            yield Reason(const.NOVA_NODES_UNNAMED, {"nodes": found})


def no_cells(request: RequestFacts) -> Reason:
    """Return the reason that NUMATopologyFilter finds no NUMA nodes for a request."""
    first = request.cells[0]
    asked = {
        "cells": [[cell.vcpus, cell.pcpus] for cell in request.cells],
        "memory_mb": [cell.memory_mb for cell in request.cells],
        "page_size_kb": first.page_size_kb,
        "cpu_thread_policy": first.cpu_thread_policy,
        "emulator_threads": request.emulator_threads,
    }
    return Reason(const.NOVA_NUMA_TOPOLOGY, asked)


def match_cells(
    request: RequestFacts, cells: Sequence[NUMACell], ratios: Mapping[str, float]
) -> tuple[int, ...] | None:
    """Return, for each cell of the request, the index of the host's cell.

    None without a complete matching.  Computed by augmenting paths: a cell of the
    request may take a host cell that is already taken if the other cell finds another
    one.  Nova tries every order, which are 500 million for 8 cells on 16.
    """
    holders: dict[int, int] = {}
    wanted = request.cells
    # Nova adds the CPU of isolated emulator threads to the first cell.
    extra = request.emulator_threads == "isolate" and request.pinned

    def place(number: int, tried: set[int]) -> bool:
        guest = wanted[number]
        for index, host in enumerate(cells):
            if index in tried or not node_fits(
                host, guest, extra and not number, ratios=ratios
            ):
                continue
            tried.add(index)
            if index not in holders or place(holders[index], tried):
                holders[index] = number
                return True
        return False

    if not all(place(number, set()) for number in range(len(wanted))):
        return None
    found = {number: index for index, number in holders.items()}
    return tuple(found[number] for number in range(len(wanted)))
