# SPDX-License-Identifier: Apache-2.0
"""Describe reasons of every layer in words for operators."""

from collections.abc import Callable, Iterable
from typing import Any

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason
from nova_perfvm.printable import number_of
from nova_perfvm.rules import REFUSALS, describe


def words(reason: Reason) -> str:
    """Return one sentence for a reason, with its figures."""
    if reason.code in REFUSALS:
        return describe(reason)
    found = _WORDS[reason.code]
    return (
        found.format_map(reason.data) if isinstance(found, str) else found(reason.data)
    )


def in_words(reasons: Iterable[Reason]) -> str:
    """Describe several reasons on one line."""
    return "; ".join(map(words, reasons))


def _resource(data: dict[str, Any]) -> str:
    name, amount, capacity = data["class"], data["amount"], data["capacity"]
    if data["shortfall"] != "full":
        return f"{name}: need {amount}; {data['shortfall']} on {data['provider']}"
    line = f"{name}: need {amount}, {capacity - data['used']} of {capacity} free"
    if capacity != data["total"]:
        line += (
            f" (({data['total']} - {data['reserved']} reserved) x {data['ratio']:g})"
        )
    return line


def _cells(data: dict[str, Any]) -> str:
    """Describe the requested NUMA nodes: shared and pinned vCPUs, memory, and keys."""
    nodes = (
        f"{shared} shared + {own} pinned vCPUs with {memory_mb} MiB"
        for (shared, own), memory_mb in zip(
            data["cells"], data["memory_mb"], strict=True
        )
    )
    kinds = {number: kind for kind, number in const.PAGE_KINDS.items()}
    size_kb = data["page_size_kb"]
    keys = {
        const.MEM_PAGE_SIZE: kinds.get(size_kb, size_kb),
        const.CPU_THREAD_POLICY: data["cpu_thread_policy"],
        const.EMULATOR_THREADS: data["emulator_threads"],
    }
    asked = [f"{key}={value}" for key, value in keys.items() if value is not None]
    return f"{' and '.join(nodes)}{', ' if asked else ''}{', '.join(asked)}"


def _devices(data: dict[str, Any]) -> str:
    found = []
    for one in data["devices"]:
        free = ", ".join(f"{number} on {node}" for node, number in one["free"].items())
        line = f"need {one['count']}, free by NUMA node: {free or 'none'}"
        found.append(f"PCI {one['name']} ({one['policy']}): {line}")
    if "room" in data:
        room = ", ".join(map(str, data["room"])) or "none"
        found.append(f"NUMA nodes with CPUs and memory for the VM: {room}")
    return "; ".join(found)


def _units(data: dict[str, Any]) -> str:
    children = "; ".join(
        f"{child['child']} gives a VM {child['max_unit']} at most, {child['used']} of "
        f"{child['total']} held by "
        + (", ".join(child["whole"]) or number_of(child["others"], "general VM"))
        for child in data["children"]
    )
    return f"units: need {data['amount']} of one child; {children}"


def _nodes(data: dict[str, Any]) -> str:
    nodes = "; ".join(
        f"node {cell['node']} has {cell['free_cpus']} of {cell['cpus']} CPUs and "
        f"{cell['free_mb']} of {cell['memory_mb']} MiB free"
        for cell in data["cells"]
    )
    need = f"{data['cpus']} CPUs and {data['memory_mb']} MiB"
    return f"NUMA nodes: need {need} of one; {nodes}"


def _isolated_aggregate(data: dict[str, Any]) -> str:
    missing = ", ".join(data["missing"])
    return (
        f"aggregate {data['aggregate']} is for requests with trait {missing} only, "
        "which flavor and image do not ask for"
    )


def _differs(data: dict[str, Any]) -> str:
    """Describe the value that a filter expects of a host, and the value found."""
    wanted, found = data["expected"], data["found"]
    return (
        f"{data['filter']}: {data['what']}: expected {wanted}, found "
        f"{'none' if found is None else found}"
    )


# A function of the reason's figures, or a text with their names in braces.
_WORDS: dict[str, str | Callable[[dict[str, Any]], str]] = {
    const.SERVICE_DISABLED: lambda d: (
        f"nova-compute is disabled: {d['why'] or 'no reason given'}"
    ),
    const.SERVICE_DOWN: lambda d: (
        "nova-compute is forced down" if d["forced"] else "nova-compute is down"
    ),
    const.NOVA_SAME_HOST: (
        "the server is on this host, and Nova never moves a server to its own host"
    ),
    const.NOVA_FILTER: "{filter} of nova-scheduler refuses the host",
    const.NOVA_DESTINATION: "the request names other hosts, or excludes this host",
    const.NOVA_NO_STATE: (
        "Placement offers the host, and nova-scheduler finds no compute node of it: is "
        "its cell down or disabled, the host mapped to no cell, or nova-compute yet to "
        "report the node?"
    ),
    const.NOVA_AVAILABILITY_ZONE: lambda d: (
        f"Placement has the host in no aggregate of zone {d['expected']}: "
        "nova-manage placement sync_aggregates"
        if d["found"] == d["expected"]
        else f"the host is in zone {d['found'] or 'none'}, {d['expected']} is asked for"
    ),
    const.NOVA_TENANT_AGGREGATE: (
        "filter_tenant_id of aggregates keeps project {project} off the host"
    ),
    const.NOVA_GROUP_POLICY: (
        "nova-conductor schedules no server of {group}: {filter} is not enabled"
    ),
    const.NOVA_GROUP_AFFINITY: lambda d: (
        f"{d['group']} has no server here, and servers on {', '.join(d['hosts'])}"
    ),
    const.NOVA_GROUP_ANTI_AFFINITY: lambda d: (
        f"{d['group']} may have {number_of(d['most'], 'server')} on a host, and has "
        f"here, or on the way: {', '.join(d['servers'])}"
    ),
    const.NOVA_NUMA_TOPOLOGY: lambda d: (
        f"NUMATopologyFilter of Nova finds no NUMA nodes for {_cells(d)}"
    ),
    const.NOVA_PCI: _devices,
    const.NOVA_PCI_NUMA: _devices,
    const.PCI_UNKNOWN: "no API shows the host's PCI devices: see --from-nova-db",
    const.NOVA_NODES_UNNAMED: lambda d: (
        f"nova-compute does not know NUMA nodes {', '.join(map(str, d['nodes']))} by "
        "name: PerfVMNUMATopologyFilter cannot steer VMs on the host"
    ),
    const.PLACEMENT_NO_PROVIDER: "Placement knows no resource provider of the host",
    const.PLACEMENT_NO_INVENTORY: "{class}: need {amount}, the host has none",
    const.PLACEMENT_RESOURCE: _resource,
    const.PLACEMENT_UNITS: _units,
    const.PLACEMENT_CELLS: _nodes,
    const.PLACEMENT_TRAIT_MISSING: "trait {trait} is missing",
    const.PLACEMENT_TRAIT_FORBIDDEN: (
        "trait {trait} is on {provider}, which the request forbids"
    ),
    **dict.fromkeys(const.FILTER_CODES.values(), _differs),
    const.PLACEMENT_ISOLATED: _isolated_aggregate,
    const.PLACEMENT_TENANT: (
        "the host is in no aggregate of project {project}, as "
        "[scheduler]limit_tenants_to_placement_aggregate wants it"
    ),
    const.PLACEMENT_GROUPS: lambda d: (
        f"too few matching providers for "
        f"{number_of(d['groups'], 'group')} of the request"
    ),
    const.PLACEMENT_REFUSED: lambda d: (
        "Placement offers no candidate of the host"
        + ", although its inventories and allocations allow one" * d["judged"]
    ),
    const.CELLS_UNKNOWN: (
        "the host's NUMA nodes are in no API and cannot be guessed, so the rules "
        "cannot be asked: see --from-nova-db and --inventory"
    ),
}
