# SPDX-License-Identifier: Apache-2.0
"""Plan to restore allocations that running servers have lost in Placement.

A rebuild that fails removes the server's whole allocation, and Nova never restores it.
Healing adds the resources that a server lacks, and drops the server's allocation on
other hosts.  Placement refuses if other servers have taken the capacity meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm import findings as codes
from nova_perfvm.changes.steps import Allocate
from nova_perfvm.diagnose.allocation import LostError, root_amounts
from nova_perfvm.diagnose.residents import shares_as_enrolled
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts.flavor_facts import server_facts
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Server, Snapshot
from nova_perfvm.findings import Finding
from nova_perfvm.placement import commands
from nova_perfvm.placement.host_schemes import enrolled_by_another, host_scheme_of
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy
from nova_perfvm.rules import resolve_class

_HEALED: Final = frozenset(
    {codes.ALLOCATION_MISSING, codes.NOT_CLAIMED, codes.UNITS_LACKING}
)


@dataclass(frozen=True)
class Healing:
    """The plan to heal the allocations of a host's servers.

    :ivar steps: {ID of a server: the resources to add to its allocation}
    :ivar left: {ID of a server that lacks resources but cannot be healed: the reason
        and the remedy}
    """

    steps: dict[str, Allocate] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)


def hosts_to_heal(snapshot: Snapshot, findings: Iterable[Finding]) -> list[str]:
    """Return the names of hosts whose servers lack allocations by audit findings."""
    hosts = {str(server): server.host for server in snapshot.servers}
    hosts |= {host.host: host.host for host in snapshot.hosts}
    found = {hosts.get(f.subject) for f in findings if f.code in _HEALED}
    return sorted(host for host in found if host is not None)


def plan_heal(
    policy: Policy, view: HostView, migrating: Collection[str] = ()
) -> Healing:
    """Return the plan that heals the allocations of a host's servers.

    :param migrating: IDs of servers with an unfinished migration
    """
    lacking: dict[str, dict[str, dict[str, int]]] = {}
    left: dict[str, str] = {}
    for server in sorted(view.servers, key=lambda server: server.id):
        if server.busy or server.id in migrating:
            if not view.root.allocations.get(server.id):
                left[server.id] = "is in Nova's hands: look again when Nova is done"
            continue
        try:
            amounts = _of_root(policy, view, server)
        except PerfVMError as exc:
            left[server.id] = str(exc)
        else:
            lacking[server.id] = {view.root.uuid: amounts} if amounts else {}
    enrolled = scheme_of(policy).enrolls and view.enrolled
    if enrolled and not enrolled_by_another(policy, view):
        _add_units(policy, view, lacking, left)
    left = {
        consumer: f"{view.describe(consumer)} {left[consumer]}" for consumer in left
    }
    steps = {
        consumer: Allocate(consumer, view.describe(consumer), resources)
        for consumer, resources in lacking.items()
        if resources and consumer not in left
    }
    return Healing(steps, left)


def _of_root(policy: Policy, view: HostView, server: Server) -> dict[str, int]:
    """Return the resources that a server lacks of its host's root provider.

    :raises LostError: when the provider lacks a resource class, or an amount cannot be
        known
    :raises RequestError: when nova-api would refuse the server's flavor today
    """
    held = view.root.allocations.get(server.id, {})
    amounts = {} if held else root_amounts(view, server)
    vm_class = resolve_class(policy, server_facts(server))
    judged = view.enrolled or policy.manages(view.facts.labels)
    if vm_class is None or not judged:
        return amounts
    wanted = scheme_of(policy).amounts(policy, vm_class, server.memory_mb)
    for name, amount in wanted.items():
        lacks = amount - held.get(name, 0)
        if name in const.CHILD_CLASSES or lacks <= 0:
            continue
        if name not in view.root.inventories:
            raise LostError(
                f"lacks {lacks} {name}, and {view.host} has none: migrate it"
            )
        amounts[name] = max(lacks, amounts.get(name, 0))
    return amounts


def _add_units(
    policy: Policy,
    view: HostView,
    lacking: dict[str, dict[str, dict[str, int]]],
    left: dict[str, str],
) -> None:
    """Add the units that servers of an enrolled host lack to `lacking` or `left`."""
    uuids = {child.name: child.uuid for child in view.children}
    shares = shares_as_enrolled(policy, view)
    for consumer, units in shares.lacking.items():
        if consumer not in lacking:
            continue
        if shares.faults:
            left[consumer] = (
                f"lacks {host_scheme_of(policy).noun}: {'; '.join(shares.faults)}"
            )
        elif units.keys() - uuids.keys():
            left[consumer] = (
                f"should hold child providers that {view.host} does not have: "
                + commands.enroll(policy, view.host, "--backfill")
            )
        else:
            lacking[consumer] |= {
                uuids[name]: dict(amounts) for name, amounts in units.items()
            }
