# SPDX-License-Identifier: Apache-2.0
"""The rules' answers in an operator's words, with the arithmetic shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nova_perfvm import constants as const
from nova_perfvm import cpuset
from nova_perfvm.rules.request import resolve_class
from nova_perfvm.rules.slots import cell_room

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nova_perfvm.facts import HostFacts, Reason, RequestFacts
    from nova_perfvm.policy import Policy


def _class_conflict(data: dict[str, Any]) -> str:
    if "others" in data:
        return (
            f"{data['others']} VM(s) of another class run on the host "
            f"({data['vcpus']} vCPUs that are not of this class)"
        )
    if "pinned" in data:
        return (
            f"cell {data['cell']} has {data['pinned']} pinned CPUs, so a VM of class "
            f"{data['class']} may run there, which shares with no other class"
        )
    return "every NUMA cell that is large enough also serves VMs of other classes"


def _no_free_slot(data: dict[str, Any]) -> str:
    free = ", ".join(str(count) for count in data["free"])
    return (
        f"free pCPUs per NUMA cell: {free}; need {data['need']} on "
        f"{data['cells']} cell(s)"
    )


def _no_sum(sizes: Sequence[int]) -> str:
    """Say what pins are not that cannot be VMs of these sizes."""
    if len(sizes) == 1:
        return f"no multiple of {sizes[0]}"
    return f"no sum of {', '.join(map(str, sizes[:-1]))} and {sizes[-1]}"


def _cell_too_small(data: dict[str, Any]) -> str:
    usable = ", ".join(str(count) for count in data["usable"])
    return (
        f"pCPUs per NUMA cell: {usable}; need {data['need']} on {data['cells']} cell(s)"
    )


def _other_terms(data: dict[str, Any]) -> str:
    return (
        f"the flavor asks Placement for {'; '.join(data['found']) or 'nothing'} where "
        f"its class asks for {'; '.join(data['expected']) or 'nothing'}"
    )


_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    const.FLAVOR_CLASS_UNKNOWN: lambda d: (
        f"perfvm:class={d['found']} is not declared; the policy has "
        f"{', '.join(d['expected'])}"
    ),
    const.FLAVOR_VCPUS: lambda d: (
        f"the flavor has {d['found']} vCPUs, its class exactly {d['expected']}"
        + (", or a server that runs has them already" if d["former"] else "")
    ),
    const.FLAVOR_CPU_POLICY: lambda d: (
        f"the request's CPU policy is {d['found']}, its class's {d['expected']}"
    ),
    const.FLAVOR_CPU_THREAD_POLICY: lambda d: (
        f"the request's CPU thread policy is {d['found']}, its class's {d['expected']}"
    ),
    const.FLAVOR_NUMA_NODES: lambda d: (
        f"the request has {len(d['found'])} NUMA node(s) of "
        f"{', '.join(map(str, d['found']))} vCPUs, its class {d['expected']} of equal "
        "size"
    ),
    const.FLAVOR_EMULATOR_THREADS: lambda d: (
        f"the request's emulator threads policy is {d['found'] or 'not set'}, its "
        f"class's {d['expected'] or 'not set'}"
    ),
    const.FLAVOR_MEM_PAGE_SIZE: lambda d: (
        f"the class wants hw:mem_page_size={d['expected']}, and neither flavor nor "
        "image asks for it"
    ),
    const.FLAVOR_RESOURCES: _other_terms,
    const.FLAVOR_TRAITS: _other_terms,
    const.REQUEST_IMAGE_TRAIT: lambda d: (
        f"the image requires {', '.join(d['found'])}, which only a flavor may"
    ),
    const.HOST_UNITS_LACKING: lambda d: (
        "the host is elastic (an aggregate of it requires "
        f"{', '.join(d['traits'])}), and the flavor asks for no {const.RC_UNIT}"
    ),
    const.REQUEST_NO_MULTIQUEUE: lambda _: (
        "the class wants multiqueue, and neither hw:vif_multiqueue_enabled of the "
        "flavor nor hw_vif_multiqueue_enabled of the image is true"
    ),
    const.REQUEST_NOT_VOLUME_BACKED: lambda _: (
        "VMs of this class boot from a volume, this one boots from an image: use "
        "openstack server create --boot-from-volume, or --volume"
    ),
    const.REQUEST_NOT_A_REBUILD: lambda _: (
        "the request's scheduler hint _nova_check_type says that it is a rebuild, so "
        "that Nova claims nothing in Placement, but it is none"
    ),
    const.HOST_NOT_MANAGED: lambda _: (
        "managed_hosts is labelled, and no aggregate of the host has metadata "
        "perfvm:class"
    ),
    const.HOST_CLASS_RESERVED: lambda d: (
        f"an aggregate reserves the host for class {', '.join(d['reserved'])}"
    ),
    const.HOST_LABEL_UNKNOWN: lambda d: (
        f"an aggregate of the host has perfvm:class={', '.join(d['found'])}, which is "
        f"not declared; the policy has {', '.join(d['expected'])}"
    ),
    const.HOST_LABEL_AMBIGUOUS: lambda d: (
        f"aggregates offer the host to the pinned classes {', '.join(d['found'])}, "
        "which cannot be told apart by their pins"
    ),
    const.HOST_NO_NUMA: lambda _: "the compute reports no NUMA cells",
    const.HOST_NO_DEDICATED_CPUS: lambda _: (
        "no CPU of the host may be pinned: [compute]cpu_dedicated_set is not set"
    ),
    const.HOST_NO_SHARED_CPUS: lambda _: (
        "no CPU of the host may be shared: [compute]cpu_shared_set is not set"
    ),
    const.HOST_MODE_MIXED: lambda _: (
        "the host has both shared and dedicated CPUs, and the class wants hosts for "
        "itself (exclusive: host)"
    ),
    const.HOST_CELL_TOO_SMALL: _cell_too_small,
    const.HOST_CELL_MEMORY: lambda d: (
        f"MiB per NUMA cell: {', '.join(map(str, d['memory_mb']))}; need {d['need']} "
        "in one (in pages of the requested size)"
    ),
    const.HOST_NO_FREE_SLOT: _no_free_slot,
    const.HOST_NO_FREE_MEMORY: lambda d: (
        f"free MiB per NUMA cell: {', '.join(map(str, d['free_mb']))}; need "
        f"{d['need']} on a cell with free pCPUs (in pages of the requested size)"
    ),
    const.HOST_MAX_PER_HOST: lambda d: (
        f"{d['count']} VM(s) on the host, max_per_host is {d['max']}"
    ),
    const.HOST_CLASS_CONFLICT: _class_conflict,
    const.HOST_FOREIGN_PINS: lambda d: (
        f"cell {d['cell']} has {d['pinned']} pinned CPUs, {_no_sum(d['sizes'])}: VMs "
        "that are not of this class run there"
    ),
    const.HOST_CLASSLESS_PINNED: lambda d: (
        f"a pinned VM of no class would strand one of the host's {d['slots']} slot(s) "
        f"for class {d['class']}"
    ),
}


def describe(reason: Reason) -> str:
    """Return one sentence for a reason, with its figures."""
    return _WORDS[reason.code](reason.data)


def describe_cells(
    policy: Policy, request: RequestFacts, host: HostFacts
) -> tuple[str, ...]:
    """Return one line per NUMA cell with the arithmetic of a pinned request.

    Empty for requests that are not pinned and of a class: nothing is counted
    per cell for those.
    """
    vm_class = resolve_class(policy, request)
    if vm_class is None or not vm_class.pinned or not request.cells:
        return ()
    vm_class = vm_class.of_size(request.vcpus)
    memory_mb = max(cell.memory_mb for cell in request.cells)
    page_size_kb = request.cells[0].page_size_kb
    lines = []
    for cell in host.cells:
        room = cell_room(vm_class, cell, memory_mb, page_size_kb)
        line = (
            f"cell {cell.id}: {room.free} of {room.usable} pCPUs free, need "
            f"{vm_class.cell_pcpus}; {cell.memory_mb - cell.memory_usage_mb} of "
            f"{cell.memory_mb} MiB free, need {memory_mb}"
        )
        if page_size_kb is not None and not room.free_memory:
            line += " in pages of the requested size, which it has not"
        if cell.pinned_cpus:
            line += f"; pinned {cpuset.format_cpus(cell.pinned_cpus)}"
        if room.foreign:
            line += f", {_no_sum(sorted(vm_class.cell_sizes))}"
        if cell.cpuset:
            line += f"; shared {cpuset.format_cpus(cell.cpuset)}"
        lines.append(line)
    return tuple(lines)
