# SPDX-License-Identifier: Apache-2.0
"""Find the servers of a host that lack units, and the units to give to each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from nova_perfvm.diagnose.allocation import root_amounts
from nova_perfvm.diagnose.sizing import as_enrolled, enrolled_slots
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import Reason, RequestCell
from nova_perfvm.facts.demand import server_facts
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Provider, Server
from nova_perfvm.placement.schemes import Child, enrolling_scheme
from nova_perfvm.policy import Policy
from nova_perfvm.rules import check_request, resolve_class
from nova_perfvm.rules.request.class_declared import CLASS_UNKNOWN
from nova_perfvm.rules.request.cpus import CPU_POLICY
from nova_perfvm.rules.request.vcpus import VCPUS

_OF_NO_CLASS: Final = frozenset({CLASS_UNKNOWN.code, CPU_POLICY.code, VCPUS.code})


@dataclass(frozen=True)
class Shares:
    """How the units of a host are divided, and how they should be.

    :ivar lacking: servers without all of their units, and what each needs: the
        amount by name of the child
    :ivar surplus: consumers that hold units of children the host should no longer
        have; UUIDs of those children
    :ivar lost: what those of them need of the host's own provider that have no
        allocation at all; the amount by resource class
    :ivar faults: why this cannot be; each names the servers and the remedy
    """

    lacking: dict[str, dict[str, int]] = field(default_factory=dict)
    lost: dict[str, dict[str, int]] = field(default_factory=dict)
    surplus: dict[str, frozenset[str]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


def class_or_misfits(
    policy: Policy, server: Server
) -> tuple[str | None, tuple[Reason, ...]]:
    """Return the class of a running server, or why it is not of the one it names.

    Neither where its CPUs are its own and its flavor names no class.
    """
    own = RequestCell(vcpus=0, pcpus=server.vcpus, memory_mb=server.memory_mb)
    request = server_facts(server)._replace(
        cells=(own,) if server.owns_cpus else (), running_vcpus=server.vcpus
    )
    misfits = tuple(r for r in check_request(policy, request) if r.code in _OF_NO_CLASS)
    vm_class = None if misfits else resolve_class(policy, request)
    return (vm_class.name if vm_class else None), misfits


def shares_as_enrolled(policy: Policy, host: HostView) -> Shares:
    """Divide the units of a host by the number of children it was enrolled for."""
    own, scheme = as_enrolled(policy, host), enrolling_scheme(policy)
    slots = enrolled_slots(own, host)
    if slots is None:
        slots = len(scheme.children(own, host, 0))
    return divide(own, host, scheme.children(own, host, slots))


def divide(policy: Policy, view: HostView, children: Sequence[Child]) -> Shares:
    """Work out the units that each VM of a host should have.

    What a VM holds already is never changed: one that holds the whole of a
    child, or one unit of each, is right whatever its flavor says.  Units are
    surplus only if their child should not exist.
    """
    wanted = {child.name for child in children}
    surplus = holders(p for p in view.children if p.name not in wanted)
    held: dict[str, dict[str, int]] = {consumer: {} for consumer in surplus}
    held |= _held(view, children)
    groups: dict[str, list[str]] = {"whole": [], "shared": [], "none": []}
    faults: list[str] = []
    lost: dict[str, dict[str, int]] = {}
    servers = {server.id: server for server in view.servers}
    for consumer in sorted(held.keys() | servers.keys()):
        units = held.get(consumer, {})
        kind, fault = _judge(policy, view, children, consumer, units)
        if not fault and consumer not in held:
            try:
                lost[consumer] = root_amounts(view, servers[consumer])
            except PerfVMError as exc:
                fault = str(exc)
        if fault:
            faults.append(f"{view.describe(consumer)} {fault}")
        groups[kind].append(consumer)
    pinned = {vm_class.name for vm_class in policy.pinned_classes}
    names = {s.id: class_or_misfits(policy, s)[0] for s in view.servers}
    takers = [c for c in groups["none"] if names.get(c) in pinned]
    sharers = [c for c in groups["none"] if names.get(c) not in pinned]
    if not faults:
        whole, shared = groups["whole"] + takers, groups["shared"] + sharers
        faults += _impossible(view, children, whole, shared)
    if faults:
        return Shares({c: {} for c in groups["none"]}, faults=tuple(faults))
    taken = {name for consumer in groups["whole"] for name in held[consumer]}
    free = [c.name for c in children if c.max_unit == c.total and c.name not in taken]
    needs = {taker: {free.pop(0): children[0].total} for taker in takers}
    for sharer in sharers:
        has = held.get(sharer, {})
        needs[sharer] = {c.name: 1 for c in children if c.name not in has}
    return Shares(needs, lost, surplus)


def _judge(
    policy: Policy,
    view: HostView,
    children: Sequence[Child],
    consumer: str,
    units: dict[str, int],
) -> tuple[str, str]:
    """Return how a consumer holds units, and why it cannot be given any; or empty."""
    kind = _kind(units, children)
    if kind != "none":
        return kind, ""
    held = ", ".join(f"{n} of {name}" for name, n in sorted(units.items())) or "none"
    server = next((s for s in view.servers if s.id == consumer), None)
    # Only a policy that has grown leaves a general VM with units of some.
    if server is None or set(units.values()) - {1}:
        return kind, (
            f"holds units of {view.host} as no flavor asks for them, or none at all "
            f"({held}): wait for what Nova does with it, confirm or revert it, clean "
            "up, or move it away"
        )
    if server.task is not None or server.status == "VERIFY_RESIZE":
        state = server.task or server.status
        return kind, (
            f"is being changed ({state}): wait for the end, or confirm or revert it"
        )
    name, _ = class_or_misfits(policy, server)
    if name is None or (units and policy.by_name[name].pinned):
        return kind, (
            "is not as VMs of a class of the policy are, by its flavor, CPUs and units "
            f"({held}): move it away"
        )
    return kind, ""


def _held(view: HostView, children: Sequence[Child]) -> dict[str, dict[str, int]]:
    """Return the units of each consumer of the tree, by name of the child."""
    names = {child.name for child in children}
    held: dict[str, dict[str, int]] = {c: {} for c in view.root.allocations}
    for provider in view.children:
        if provider.name not in names:
            continue
        for consumer, amount in provider.units().items():
            held.setdefault(consumer, {})[provider.name] = amount
    return held


def holders(children: Iterable[Provider]) -> dict[str, frozenset[str]]:
    """Return who holds something of child providers, and the UUIDs of these."""
    found: dict[str, set[str]] = {}
    for provider in children:
        for consumer in provider.allocations:
            found.setdefault(consumer, set()).add(provider.uuid)
    return {consumer: frozenset(uuids) for consumer, uuids in sorted(found.items())}


def _kind(units: dict[str, int], children: Sequence[Child]) -> str:
    if len(units) == 1 and next(iter(units.values())) == children[0].total:
        return "whole"
    if units and units == {child.name: 1 for child in children}:
        return "shared"
    return "none"


def _impossible(
    view: HostView, children: Sequence[Child], whole: list[str], shared: list[str]
) -> Iterator[str]:
    """Yield what keeps such VMs from being on one host together."""
    slots = sum(child.max_unit == child.total for child in children)
    units = children[0].total if children else len(shared)
    if (whole and shared) or len(whole) > slots or len(shared) > units:
        high, general = (", ".join(map(view.describe, c)) for c in (whole, shared))
        yield (
            f"{view.host} has {len(whole)} high-performance VMs ({high}) and "
            f"{len(shared)} general ones ({general}), and takes {slots} of the former "
            f"or {units} of the latter: move the others away"
        )
