# SPDX-License-Identifier: Apache-2.0
"""What a compute host is to a policy, as far as the APIs show it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from nova_perfvm import constants as const
from nova_perfvm import rules
from nova_perfvm.facts.elastic_host import PCPU
from nova_perfvm.policy import largest_slots
from nova_perfvm.rules import host_mode
from nova_perfvm.rules.slots import smallest_memory_mb

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from nova_perfvm.facts import HostFacts
    from nova_perfvm.facts.snapshot import ComputeHost, Provider, Snapshot
    from nova_perfvm.policy import HostShape, Policy, VMClass

UNKNOWN = "unknown"


@dataclass(frozen=True)
class HostSummary:
    """One compute host.

    :ivar state: up or down, and whether it is disabled
    :ivar mode: dedicated, shared, mixed or elastic; hosts without cpu sets that
        are not enrolled count as shared, which no API tells apart; unknown where
        Placement has no provider
    :ivar slots: high-performance VMs that fit, None where Placement counts none
    :ivar used: slots that are taken
    :ivar classes: those it is reserved for, or else those its mode lets in
    :ivar aggregates: names
    :ivar inventories: of the host and below, in words by provider and class
    """

    host: str
    node: str
    state: str
    mode: str
    shape: HostShape | None
    slots: int | None
    used: int | None
    classes: tuple[str, ...]
    aggregates: tuple[str, ...]
    traits: tuple[str, ...] = ()
    inventories: Mapping[str, str] = field(default_factory=dict)
    servers: tuple[str, ...] = ()

    @property
    def cells(self) -> int | None:
        """NUMA cells, None where the hypervisor tells no topology."""
        return self.shape.cells if self.shape else None


def summarize(policy: Policy, snapshot: Snapshot) -> list[HostSummary]:
    """Return all compute hosts, in the snapshot's order."""
    return [_summary(policy, snapshot, host) for host in snapshot.hosts]


def host_slots(policy: Policy, shape: HostShape) -> int:
    """Return how many VMs of a pinned class an empty host of a shape holds."""
    return largest_slots(replace(policy, host_shapes=(shape,)))


def slot_class(policy: Policy, labels: Collection[str]) -> VMClass | None:
    """Return the pinned class that a host has slots for; None unless it is just one.

    :param labels: the classes that aggregates reserve the host for
    """
    classes = [
        vm_class
        for vm_class in policy.pinned_classes
        if not labels or vm_class.name in labels
    ]
    return classes[0] if len(classes) == 1 else None


def expected_slots(
    policy: Policy, host: ComputeHost, facts: HostFacts, root: Provider
) -> int | None:
    """Count the slots that a host's provider.yaml should promise.

    :param facts: the host as the rules judge it
    :param root: its top resource provider
    :returns: None where that cannot be told
    """
    vm_class = slot_class(policy, facts.labels)
    if vm_class is None or PCPU not in root.inventories:
        return 0
    if not host.cells:
        return None
    if vm_class.exclusive == "host" and host_mode(facts) == "mixed":
        return 0
    if host.division_assumed:
        return None
    slots = rules.host_slots(vm_class, facts.cells)
    memory, each = root.inventories.get("MEMORY_MB"), smallest_memory_mb(vm_class)
    if memory is not None and each:
        # The cells have the memory of the host itself, too.
        slots = min(slots, memory.capacity // each)
    return slots


def _summary(policy: Policy, snapshot: Snapshot, host: ComputeHost) -> HostSummary:
    root = snapshot.provider_by_uuid.get(host.provider)
    tree = snapshot.trees.get(host.provider, ())
    children = [
        provider
        for provider in tree
        if root
        and provider.name.startswith(f"{root.name}_perfvm_")
        and const.RC_UNIT in provider.inventories
    ]
    slots, used = _slots(root, children)
    mode = _mode(root, children, slots)
    labels = snapshot.labels(host.host)
    return HostSummary(
        host=host.host,
        node=host.node,
        state=("up" if host.up else "down") + ("" if host.enabled else ", disabled"),
        mode=mode,
        shape=host.shape,
        slots=slots,
        used=used,
        classes=tuple(sorted(labels)) or _admitted(policy, mode),
        aggregates=tuple(a.name for a in snapshot.aggregates if host.host in a.hosts),
        traits=tuple(sorted(root.traits)) if root else (),
        inventories=dict(_inventories(tree)),
        servers=tuple(str(s) for s in snapshot.servers_by_host.get(host.host, ())),
    )


def _slots(
    root: Provider | None, children: Sequence[Provider]
) -> tuple[int | None, int | None]:
    if root and const.RC_SLOT in root.inventories:
        return root.total(const.RC_SLOT), root.used(const.RC_SLOT)
    if not children:
        return None, None
    whole = [c for c in children if _max_unit(c) == c.total(const.RC_UNIT)]
    taken = [c for c in whole if c.total(const.RC_UNIT) in c.units().values()]
    return len(whole), len(taken)


def _max_unit(provider: Provider) -> int:
    return provider.inventories[const.RC_UNIT].max_unit


def _mode(
    root: Provider | None, children: Sequence[Provider], slots: int | None
) -> str:
    if root is None:
        return UNKNOWN
    if root.total("PCPU"):
        return "mixed" if root.total("VCPU") else "dedicated"
    return "elastic" if children and slots else "shared"


def _admitted(policy: Policy, mode: str) -> tuple[str, ...]:
    return tuple(
        vm_class.name
        for vm_class in policy.classes
        if mode in {"mixed", "elastic"}
        or mode == ("dedicated" if vm_class.pinned else "shared")
    )


def _inventories(tree: Sequence[Provider]) -> Iterator[tuple[str, str]]:
    for provider in tree:
        for name, found in sorted(provider.inventories.items()):
            used = f"{provider.used(name)} of {found.capacity} used"
            yield f"{provider.name} {name}", f"{used}, at most {found.max_unit} a VM"
