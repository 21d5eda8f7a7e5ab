# SPDX-License-Identifier: Apache-2.0
"""Rules about one host, which say whether a request may come there.

Facts are the scheduler's and may be a minute old; what must hold under
concurrency is for Placement to enforce.  Here, doubt is resolved by refusing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason
from nova_perfvm.rules.contract import check_units
from nova_perfvm.rules.request import resolve_class
from nova_perfvm.rules.slots import (
    cell_cpus,
    count_vms,
    host_mode,
    host_slots,
    is_foreign,
    memory_fits,
)

if TYPE_CHECKING:
    from nova_perfvm.facts import HostFacts, NUMACell, RequestFacts
    from nova_perfvm.policy import Policy, VMClass

_PASS: tuple[Reason, ...] = ()


def check_host(
    policy: Policy, request: RequestFacts, host: HostFacts
) -> tuple[Reason, ...]:
    """List why a host may not take a request; empty when it may.

    The request is taken to be of its class
    (:func:`nova_perfvm.rules.check_request`).  The first reason is the one to
    act on.
    """
    # Whatever the policy's labels: Placement does not look at forced hosts.
    lacking = tuple(check_units(request, host))
    return lacking or _check_managed(policy, request, host)


def _check_managed(
    policy: Policy, request: RequestFacts, host: HostFacts
) -> tuple[Reason, ...]:
    vm_class = resolve_class(policy, request)
    if not policy.manages(host.labels):
        # Outside the policy's hosts nothing changes, but VMs that were promised
        # a host of their own do not go where no rule holds.
        if vm_class is not None and vm_class.pinned:
            return (Reason(const.HOST_NOT_MANAGED, {}),)
        return _PASS
    if not request.claimed:
        return (Reason(const.REQUEST_NOT_A_REBUILD, {}),)
    if host.labels:
        refused = _check_labels(policy, vm_class, host)
        if refused:
            return refused
    if vm_class is None:
        return _check_classless(policy, host)
    return (
        _check_pinned(vm_class.of_size(request.vcpus), request, host)
        if vm_class.pinned
        else _check_shared(policy, host)
    )


def _check_labels(
    policy: Policy, vm_class: VMClass | None, host: HostFacts
) -> tuple[Reason, ...]:
    labels = host.labels
    unknown = labels - policy.by_name.keys()
    if unknown:
        return (
            Reason(
                const.HOST_LABEL_UNKNOWN,
                {"found": sorted(unknown), "expected": sorted(policy.by_name)},
            ),
        )
    if vm_class is None or vm_class.name not in labels:
        return (Reason(const.HOST_CLASS_RESERVED, {"reserved": sorted(labels)}),)
    pinned = [c for c in policy.pinned_classes if c.name in labels]
    if len(pinned) > 1 and any(c.exclusive != "none" for c in pinned):
        return (
            Reason(
                const.HOST_LABEL_AMBIGUOUS, {"found": sorted(c.name for c in pinned)}
            ),
        )
    return _PASS


def _check_classless(policy: Policy, host: HostFacts) -> tuple[Reason, ...]:
    """Refuse pinned VMs of no class where they would strand a slot."""
    for vm_class in policy.pinned_classes:
        slots = host_slots(vm_class, host.cells)
        if slots:
            return (
                Reason(
                    const.HOST_CLASSLESS_PINNED,
                    {"class": vm_class.name, "slots": slots},
                ),
            )
    return _PASS


def _check_shared(policy: Policy, host: HostFacts) -> tuple[Reason, ...]:
    """Keep VMs that share CPUs from those that want a host or a cell."""
    cells = host.cells
    if not cells:
        return _PASS
    if not any(cell.cpuset for cell in cells):
        return (Reason(const.HOST_NO_SHARED_CPUS, {}),)
    if not any(cell.pinned_cpus for cell in cells):
        return _PASS
    for vm_class in policy.pinned_classes:
        if vm_class.exclusive == "none":
            continue
        if host.labels and vm_class.name not in host.labels:
            continue
        share = vm_class.least_cell_vcpus
        for cell in cells:
            pins = len(cell.pinned_cpus)
            # Pins below one VM's share cannot be a VM of that class.  From
            # there on they may be; five VMs of 4 CPUs look like one of 20.
            if pins >= share and (vm_class.exclusive == "host" or cell.cpuset):
                return (
                    Reason(
                        const.HOST_CLASS_CONFLICT,
                        {"class": vm_class.name, "cell": cell.id, "pinned": pins},
                    ),
                )
    return _PASS


def _check_pinned(
    vm_class: VMClass, request: RequestFacts, host: HostFacts
) -> tuple[Reason, ...]:
    if not host.cells:
        return (Reason(const.HOST_NO_NUMA, {}),)
    mode = host_mode(host)
    if mode in {"shared", "none"}:
        return (Reason(const.HOST_NO_DEDICATED_CPUS, {}),)
    if vm_class.exclusive == "host" and mode == "mixed":
        return (Reason(const.HOST_MODE_MIXED, {}),)

    refused = _check_other_vms(vm_class, host, mode)
    if refused:
        return refused

    # Every cell of a request that is of its class asks for the same; memory
    # may differ by what does not divide evenly.
    memory_mb = max(cell.memory_mb for cell in request.cells)
    page_size_kb = request.cells[0].page_size_kb
    need, missing = vm_class.cell_pcpus, vm_class.cells_per_vm
    counts = [cell_cpus(vm_class, cell) for cell in host.cells]
    for cell, (_, free) in zip(host.cells, counts, strict=True):
        if free >= need and admits(vm_class, cell, mode, memory_mb, page_size_kb):
            missing -= 1
            if not missing:
                return _check_cap(vm_class, host)
    return (_why_no_room(vm_class, host, mode, counts, memory_mb, page_size_kb),)


def _check_other_vms(
    vm_class: VMClass, host: HostFacts, mode: str
) -> tuple[Reason, ...]:
    """Refuse a host on which VMs of another kind can be told to run."""
    if vm_class.exclusive == "none":
        return _PASS
    if vm_class.exclusive == "host":
        for cell in host.cells:
            pins = len(cell.pinned_cpus)
            if pins and is_foreign(vm_class, pins):
                return (
                    Reason(
                        const.HOST_FOREIGN_PINS,
                        {
                            "cell": cell.id,
                            "pinned": pins,
                            "sizes": sorted(vm_class.cell_sizes),
                        },
                    ),
                )
    if mode == "open":
        # Unpinned VMs float over all CPUs of such a host.
        others, vcpus = unpinned_vms(vm_class, host)
        if others:
            return (
                Reason(const.HOST_CLASS_CONFLICT, {"others": others, "vcpus": vcpus}),
            )
    return _PASS


def unpinned_vms(vm_class: VMClass, host: HostFacts) -> tuple[int, int]:
    """Count the VMs on a host that own no CPUs, and their vCPUs.

    A hint, made for hosts of the mode ``open``: what the host has beyond VMs of
    the class, whose pins tell them.  (0, 0) unless both figures are above 0.
    """
    # vcpus_used alone cannot tell such VMs: it starts at reserved_host_cpus.
    # Nor can num_instances: VMs moving in are pinned before they are counted.
    mine = count_vms(vm_class, host)
    others = host.num_instances - mine.least
    vcpus = host.vcpus_used - mine.vcpus
    return (others, vcpus) if others > 0 and vcpus > 0 else (0, 0)


def admits(
    vm_class: VMClass,
    cell: NUMACell,
    mode: str,
    memory_mb: int,
    page_size_kb: int | None,
) -> bool:
    """Return whether a cell with CPUs enough takes a VM now, by its company and memory.

    :param mode: of the cell's host, as ``host_mode`` has it
    :param memory_mb: the VM's memory on this cell, in MiB
    """
    return (
        vm_class.exclusive != "cell" or has_cell_for_itself(vm_class, cell, mode)
    ) and (memory_fits(cell, memory_mb, page_size_kb, now=True))


def has_cell_for_itself(vm_class: VMClass, cell: NUMACell, mode: str) -> bool:
    """Return whether a VM that wants its cell for itself would have it."""
    return not is_foreign(vm_class, len(cell.pinned_cpus)) and not (
        mode == "mixed" and cell.cpuset
    )


def _why_no_room(
    vm_class: VMClass,
    host: HostFacts,
    mode: str,
    counts: list[tuple[int, int]],
    memory_mb: int,
    page_size_kb: int | None,
) -> Reason:
    """Find the first of the conditions that too few cells fulfil."""
    need, wanted = vm_class.cell_pcpus, vm_class.cells_per_vm
    cells = [
        (cell, free)
        for cell, (usable, free) in zip(host.cells, counts, strict=True)
        if usable >= need
    ]
    if len(cells) < wanted:
        return Reason(
            const.HOST_CELL_TOO_SMALL,
            {"usable": [usable for usable, _ in counts], "need": need, "cells": wanted},
        )
    if vm_class.exclusive == "cell":
        cells = [pair for pair in cells if has_cell_for_itself(vm_class, pair[0], mode)]
        if len(cells) < wanted:
            return Reason(const.HOST_CLASS_CONFLICT, {"cells": wanted})
    if sum(free >= need for _, free in cells) < wanted:
        return Reason(
            const.HOST_NO_FREE_SLOT,
            {
                "free": [max(0, free) for _, free in counts],
                "need": need,
                "cells": wanted,
            },
        )
    fits = sum(memory_fits(c, memory_mb, page_size_kb, now=False) for c, _ in cells)
    if fits < wanted:
        return Reason(
            const.HOST_CELL_MEMORY,
            {"memory_mb": [c.memory_mb for c in host.cells], "need": memory_mb},
        )
    return Reason(
        const.HOST_NO_FREE_MEMORY,
        {
            "free_mb": [c.memory_mb - c.memory_usage_mb for c in host.cells],
            "need": memory_mb,
        },
    )


def _check_cap(vm_class: VMClass, host: HostFacts) -> tuple[Reason, ...]:
    cap = vm_class.max_per_host
    if cap is None:
        return _PASS
    mine = count_vms(vm_class, host)
    if vm_class.exclusive == "host":
        # Nothing else may be on such a host, so whatever is counts: five VMs of
        # 4 CPUs pin as many as one of 20.  A VM that has moved away is counted
        # until the compute's next periodic task; better refused than beside.  Of
        # those moving in, which only pins tell, two small ones may be taken for
        # one of a former size.
        count = max(mine.least, host.num_instances)
    else:
        count = mine.most
    if count < cap:
        return _PASS
    return (Reason(const.HOST_MAX_PER_HOST, {"count": count, "max": cap}),)
