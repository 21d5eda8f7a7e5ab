# SPDX-License-Identifier: Apache-2.0
"""Put the reasons of every layer into an operator's words."""

from collections.abc import Callable, Mapping
from typing import Any

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason
from nova_perfvm.printable import number_of
from nova_perfvm.rules import REFUSALS, describe

_TENANTS = {
    "of others": "an aggregate of the host is for projects other than {}",
    "others": "project {} has aggregates of its own, and the host is in none",
    "none": (
        "project {} has no aggregate of its own, which "
        "[scheduler]placement_aggregate_required_for_tenants demands"
    ),
}


def words(reason: Reason, names: Mapping[str, str] | None = None) -> str:
    """Return one sentence for a reason, with its figures.

    :param names: of the servers by their IDs
    """
    if reason.code in REFUSALS:
        return describe(reason)
    if reason.code == const.PLACEMENT_UNITS:
        return _units(reason.data, names or {})
    return _WORDS[reason.code](reason.data)


def _resource(data: dict[str, Any]) -> str:
    name, amount, used = data["class"], data["amount"], data["used"]
    if data["shortfall"] != "full":
        return f"{name}: need {amount}; {data['shortfall']} on {data['provider']}"
    left = data["capacity"] - used
    line = f"{name}: need {amount}, {max(0, left)} of {data['capacity']} free"
    ratio = "" if data["ratio"] == 1 else f" x {data['ratio']:g}"
    if ratio or data["reserved"]:
        line += f" (({data['total']} - {data['reserved']} reserved){ratio})"
    if left < 0:
        line += f", {-left} more used than there is"
    return line


def _cells(wanted: list[list[int]]) -> str:
    """Return what is asked for: vCPUs that share CPUs and vCPUs that own some."""
    return " and ".join(
        " + ".join(
            number_of(amount, kind)
            for amount, kind in ((shared, "shared vCPU"), (own, "pinned vCPU"))
            if amount
        )
        for shared, own in wanted
    )


def _units(data: dict[str, Any], names: Mapping[str, str]) -> str:
    amount, children = data["amount"], data["children"]
    lines = []
    for child in children:
        total, used, others = child["total"], child["used"], child["others"]
        holders = ", ".join(names.get(uuid, uuid) for uuid in child["whole"])
        if amount > child["max_unit"]:
            said = f"gives {child['max_unit']} at most: it is for general VMs only"
        elif holders:
            said = f"all {total} held by {holders}"
        elif amount == 1 and used >= total:
            said = (
                f"{used} of {total} held by general VMs: as many as the host may have"
            )
        else:
            said = f"{used} of {total} held by {number_of(others, 'general VM')}"
        lines.append(f"{child['child']} {said}")
    return f"units: need {amount} of one child; {'; '.join(lines)}"


def _isolated(data: dict[str, Any]) -> str:
    missing = ", ".join(data["missing"])
    return (
        f"aggregate {data['aggregate']} is for requests with trait {missing} only, "
        "which flavor and image do not ask for"
    )


_WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    const.SERVICE_DISABLED: lambda d: (
        f"nova-compute is disabled: {d['why'] or 'no reason given'}"
    ),
    const.SERVICE_DOWN: lambda d: (
        "nova-compute is forced down" if d["forced"] else "nova-compute is down"
    ),
    const.NOVA_AVAILABILITY_ZONE: lambda d: (
        f"the host is in zone {d['found'] or 'none'}, {d['expected']} is asked for"
    ),
    const.NOVA_TENANT_AGGREGATE: lambda d: _TENANTS[d["aggregates"]].format(
        d["project"]
    ),
    const.NOVA_NUMA_TOPOLOGY: lambda d: (
        f"no NUMA nodes of the host for {_cells(d['cells'])}, which Nova's "
        "NUMATopologyFilter looks for"
    ),
    const.PLACEMENT_NO_PROVIDER: lambda _: (
        "Placement knows no resource provider of the host: is nova-compute new, or was "
        "its provider deleted?"
    ),
    const.PLACEMENT_NO_INVENTORY: lambda d: (
        f"{d['class']}: need {d['amount']}, the host has none"
    ),
    const.PLACEMENT_RESOURCE: _resource,
    const.PLACEMENT_TRAIT_MISSING: lambda d: f"trait {d['trait']} is missing",
    const.PLACEMENT_TRAIT_FORBIDDEN: lambda d: (
        f"trait {d['trait']} is on {d['provider']}, which the request forbids"
    ),
    const.PLACEMENT_ISOLATED: _isolated,
    const.PLACEMENT_GROUPS: lambda d: (
        f"no provider, or none left, for all of "
        f"{number_of(d['groups'], 'group')} of the request"
    ),
    const.PLACEMENT_REFUSED: lambda _: (
        "Placement offers no candidate of the host, though by its inventories and "
        "allocations it could"
    ),
    const.CELLS_UNKNOWN: lambda _: (
        "the host's NUMA nodes are in no API and cannot be guessed, so the rules "
        "cannot be asked: see --from-nova-db and --inventory"
    ),
}
