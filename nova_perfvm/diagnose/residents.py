# SPDX-License-Identifier: Apache-2.0
"""Find servers that lack child providers' resources, and compute what each needs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nova_perfvm.diagnose.allocation import root_amounts
from nova_perfvm.diagnose.elastic_slots import as_enrolled, enrolled_slots
from nova_perfvm.exceptions import PerfVMError
from nova_perfvm.facts import Reason, RequestCell
from nova_perfvm.facts.flavor_facts import server_facts
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Provider, Server
from nova_perfvm.placement.host_schemes import Child, HostScheme, host_scheme_of
from nova_perfvm.placement.host_schemes.residents import Holding, Resident, in_words
from nova_perfvm.policy import Policy
from nova_perfvm.rules import check_request, resolve_class
from nova_perfvm.rules.request.class_declared import CLASS_UNKNOWN
from nova_perfvm.rules.request.cpus import CPU_POLICY
from nova_perfvm.rules.request.vcpus import VCPUS

_OF_NO_CLASS: Final = frozenset({CLASS_UNKNOWN.code, CPU_POLICY.code, VCPUS.code})


@dataclass(frozen=True)
class Shares:
    """The actual and the required division of a host's children.

    :ivar lacking: {ID of a server that holds too little: the resources it needs}
    :ivar surplus: {ID of a consumer: UUIDs of the children it holds that the host
        should not have any more}
    :ivar lost: {ID of a server without any allocation: the amounts it needs of the
        host's root provider, by resource class}
    :ivar faults: why the children cannot be divided; each names the server and the
        remedy
    """

    lacking: Mapping[str, Holding]
    lost: dict[str, dict[str, int]] = field(default_factory=dict)
    surplus: dict[str, frozenset[str]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


def class_or_misfits(
    policy: Policy, server: Server
) -> tuple[str | None, tuple[Reason, ...]]:
    """Return a running server's class, or why it does not match the class it names.

    A pinned server whose flavor names no class has neither.
    """
    own = RequestCell(vcpus=0, pcpus=server.vcpus, memory_mb=server.memory_mb)
    request = server_facts(server)._replace(
        cells=(own,) if server.owns_cpus else (), running_vcpus=server.vcpus
    )
    misfits = tuple(r for r in check_request(policy, request) if r.code in _OF_NO_CLASS)
    vm_class = None if misfits else resolve_class(policy, request)
    return (vm_class.name if vm_class else None), misfits


def shares_as_enrolled(policy: Policy, host: HostView) -> Shares:
    """Divide the children of a host as it was enrolled."""
    own, _, children = as_enrolled_children(policy, host)
    return divide(own, host, children)


def as_enrolled_children(
    policy: Policy, host: HostView
) -> tuple[Policy, HostScheme, tuple[Child, ...]]:
    """Return the policy that a host's traits show, its scheme and wanted children."""
    own = as_enrolled(policy, host)
    scheme, slots = host_scheme_of(own), enrolled_slots(own, host)
    if slots is None:
        slots = len(scheme.children(own, host, 0))
    return own, scheme, scheme.children(own, host, slots)


def divide(policy: Policy, view: HostView, children: Sequence[Child]) -> Shares:
    """Compute the resources that each VM of a host should hold of its children.

    A VM keeps the resources that it holds if they are valid for the VM, whatever its
    flavor says.  Only children that should not exist have a surplus.
    """
    scheme = host_scheme_of(policy)
    wanted = {child.name for child in children}
    surplus = holders(p for p in view.children if p.name not in wanted)
    residents = residents_of(policy, view, children, surplus)
    settled = [r for r in residents if scheme.is_settled(policy, children, r)]
    others = [r for r in residents if r not in settled]
    faults: list[str] = []
    lost: dict[str, dict[str, int]] = {}
    known = {c for p in (view.root, *view.children) for c in p.allocations}
    for resident in others:
        fault = _fault(policy, view, resident)
        if not fault and resident.server and resident.consumer not in known:
            try:
                lost[resident.consumer] = root_amounts(view, resident.server)
            except PerfVMError as exc:
                fault = str(exc)
        if fault:
            faults.append(f"{view.describe(resident.consumer)} {fault}")
    needs: Mapping[str, Holding] = {}
    if not faults:
        needs, why = scheme.divide(policy, view, children, settled, others)
        faults += why
    if faults:
        return Shares({r.consumer: {} for r in others}, faults=tuple(faults))
    return Shares(needs, lost, surplus)


def residents_of(
    policy: Policy,
    view: HostView,
    children: Sequence[Child],
    others: Iterable[str] = (),
) -> list[Resident]:
    """Return the consumers on a host or its children, sorted by UUID.

    :param others: further consumers to include
    """
    names = {child.name for child in children}
    held: dict[str, dict[str, Mapping[str, int]]] = {}
    for provider in view.children:
        if provider.name in names:
            for consumer, taken in provider.held_of_child().items():
                held.setdefault(consumer, {})[provider.name] = taken
    servers = {server.id: server for server in view.servers}
    found = []
    for consumer in sorted({*held, *servers, *others, *view.root.allocations}):
        server = servers.get(consumer)
        name = class_or_misfits(policy, server)[0] if server else None
        vm_class = policy.by_name[name] if name else None
        found.append(Resident(consumer, server, vm_class, held.get(consumer, {})))
    return found


def _fault(policy: Policy, view: HostView, resident: Resident) -> str:
    """Return why a resident cannot get the resources it lacks; empty if it can."""
    server, vm_class = resident.server, resident.vm_class
    scheme = host_scheme_of(policy)
    held = in_words(resident.held) or "none"
    if server is None or not scheme.completes(resident.held):
        return (
            f"holds {scheme.noun} of {view.host} in amounts that no flavor asks for "
            f"({held}): wait until Nova has finished, confirm or revert a resize, "
            "clean up, or move it away"
        )
    if server.task is not None or server.status == "VERIFY_RESIZE":
        state = server.task or server.status
        return f"is being changed ({state}): wait for the end, or confirm or revert it"
    if not scheme.may_take(resident) or (
        resident.held and vm_class is not None and vm_class.pinned
    ):
        return (
            "matches no class of the policy by its flavor, CPUs and "
            f"{scheme.noun} ({held}): move it away"
        )
    return ""


def holders(children: Iterable[Provider]) -> dict[str, frozenset[str]]:
    """Return the UUIDs of the child providers that each consumer holds resources of."""
    found: dict[str, set[str]] = {}
    for provider in children:
        for consumer in provider.allocations:
            found.setdefault(consumer, set()).add(provider.uuid)
    return {consumer: frozenset(uuids) for consumer, uuids in sorted(found.items())}
