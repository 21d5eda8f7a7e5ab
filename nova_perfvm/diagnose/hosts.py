# SPDX-License-Identifier: Apache-2.0
"""Describe a compute host under a policy: mode, classes and slots."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from nova_perfvm import constants as const
from nova_perfvm.facts.host_view import HostView, views_of
from nova_perfvm.facts.snapshot import UNKNOWN, Snapshot
from nova_perfvm.placement.host_schemes import HOST_SCHEMES, scheme_counting
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.rules import slots as room


@dataclass(frozen=True)
class HostSummary:
    """One compute host under a policy.

    :ivar mode: dedicated, shared, mixed or elastic; unknown if Placement has no
        provider.  Hosts without cpu sets that are not enrolled count as shared, because
        no API tells the two apart
    :ivar slots: high-performance VMs that fit; None if Placement counts no slots
    :ivar used: slots that are taken
    :ivar classes: the classes that the host is reserved for, or else those that its
        mode allows; only pinned classes on a dedicated host
    """

    view: HostView
    mode: str
    slots: int | None
    used: int | None
    classes: tuple[str, ...]


def summarize(policy: Policy, snapshot: Snapshot) -> list[HostSummary]:
    """Return a summary of each compute host, in the snapshot's order."""
    return [_summary(policy, view) for view in views_of(snapshot)]


def elastic_hosts(
    views: Iterable[HostView], wanted: Collection[str] = frozenset()
) -> tuple[HostView, ...]:
    """Return the hosts that are enrolled, even partly, and the `wanted` hosts.

    :param wanted: names of hosts or compute nodes
    """
    return tuple(
        view
        for view in views
        if view.tree
        and (
            view.enrolled
            or view.children
            or view.isolated_by
            or view.host in wanted
            or view.root.name in wanted
        )
    )


def slot_class(policy: Policy, labels: Collection[str]) -> VMClass | None:
    """Return the pinned class that a host has slots for; None unless exactly one.

    :param labels: the classes that aggregates reserve the host for
    """
    classes = [
        vm_class
        for vm_class in policy.pinned_classes
        if not labels or vm_class.name in labels
    ]
    return classes[0] if len(classes) == 1 else None


def expected_slots(policy: Policy, view: HostView) -> int | None:
    """Count the slots that a host's provider.yaml should declare.

    :param view: of a host with a provider
    :returns: None if the NUMA nodes are not known well enough
    """
    vm_class = slot_class(policy, view.facts.labels)
    if vm_class is None or const.PCPU not in view.root.inventories:
        return 0
    if not view.compute.cells:
        return None
    if vm_class.exclusive == "host" and room.host_mode(view.facts) == "mixed":
        return 0
    if view.compute.division_assumed:
        return None
    count = room.host_slots(vm_class, view.facts.cells)
    each = room.smallest_memory_mb(vm_class)
    memory = view.root.inventories.get("MEMORY_MB")
    if memory is not None and each:
        # The cells' memory includes the memory reserved for the host itself.
        count = min(count, memory.capacity // each)
    return count


def _summary(policy: Policy, view: HostView) -> HostSummary:
    seen = (scheme.slots_seen(view.tree) for scheme in HOST_SCHEMES.values())
    count, used = next((found for found in seen if found), (None, None))
    mode = _mode(view, count)
    classes = _classes(policy, mode, view.facts.labels)
    return HostSummary(view, mode, count, used, classes)


def _mode(view: HostView, slots: int | None) -> str:
    if not view.tree:
        return UNKNOWN
    if view.root.mode != "open":
        return view.root.mode
    below = any(scheme_counting(child.inventories) for child in view.tree[1:])
    return "elastic" if below and slots else "shared"


def _classes(policy: Policy, mode: str, labels: Collection[str]) -> tuple[str, ...]:
    if labels and mode != "dedicated":
        return tuple(sorted(labels))
    return tuple(
        vm_class.name
        for vm_class in policy.classes
        # An enrolled host's label allows all classes, whatever the host's mode.
        if (not labels or vm_class.name in labels)
        and mode in {"mixed", "elastic", "dedicated" if vm_class.pinned else "shared"}
    )


def inventories_of(view: HostView) -> dict[str, str]:
    """Return the usage of a host's inventories in words, by provider and class."""
    return {
        f"{provider.name} {name}": (
            f"{provider.used(name)} of {found.capacity} used, at most "
            f"{found.max_unit} a VM"
        )
        for provider in view.tree
        for name, found in sorted(provider.inventories.items())
    }
