# SPDX-License-Identifier: Apache-2.0
"""Check that hosts offer the slots, traits and IOPS that the policy gives them."""

from collections.abc import Iterator
from typing import Final

from nova_perfvm import findings as codes
from nova_perfvm.diagnose.audit.subject import Subject
from nova_perfvm.diagnose.hosts import expected_slots, slot_class
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import ASSUMED
from nova_perfvm.findings import Finding
from nova_perfvm.placement.commands import remove_trait
from nova_perfvm.placement.host_schemes import host_scheme_of, scheme_counting
from nova_perfvm.placement.schemes import guaranteed_iops, scheme_of
from nova_perfvm.policy import Policy, VMClass
from nova_perfvm.rules.host import unreadable

_REPORT_ANEW: Final = (
    "systemctl restart nova-compute on the host, which reports anew; if it is newer "
    "than nova-scheduler, upgrade that first"
)


def check(subject: Subject) -> Iterator[Finding]:
    """Compare the offer of each host with the policy."""
    for view in subject.views:
        error = unreadable.fault(view.facts)
        if error:
            yield Finding.of(
                codes.HOST_UNREADABLE,
                view.host,
                f"the host's record in Nova's database cannot be read: {error}: no VM "
                "comes here",
                _REPORT_ANEW,
            )
        elif view.tree and subject.managed(view.host):
            yield from _of_host(subject.policy, view)


def _of_host(policy: Policy, view: HostView) -> Iterator[Finding]:
    """Compare the slots of each class that a host offers with the policy."""
    scheme, root = scheme_of(policy), view.root
    counted = {name for name in root.inventories if _is_slot(name)}
    known = {scheme.slot_class(policy, c) for c in policy.pinned_classes}
    if not scheme.offers_slots:
        for name in sorted(counted - known):
            yield _differs(
                view,
                f"{root.total(name)} {name}, and the policy says placement: "
                f"{policy.placement}",
            )
        return
    mine = slot_class(policy, view.facts.labels)
    wanted = expected_slots(policy, view)
    for vm_class in policy.pinned_classes:
        expected = wanted if vm_class is mine else 0
        yield from _of_class(policy, vm_class, view, expected)
    for name in sorted(counted - known):
        words = f"{root.total(name)} {name}, and the policy has no such class"
        yield _differs(view, words)


def _is_slot(name: str) -> bool:
    """Return whether a resource class counts VMs on the host's root provider."""
    found = scheme_counting([name])
    return found is not None and not found.scheme.enrolls


def _of_class(
    policy: Policy,
    vm_class: VMClass,
    view: HostView,
    expected: int | None,
) -> Iterator[Finding]:
    scheme, host, root = scheme_of(policy), view.compute, view.root
    name, trait = scheme.slot_class(policy, vm_class), scheme.trait(policy, vm_class)
    found = root.total(name)
    if expected:
        offer = host_scheme_of(policy).offers(policy, vm_class, root.mode, expected)
        expected = offer.inventories[name].total
    if expected is None or (host.cells_source == ASSUMED and 0 < found < expected):
        # Nodes are assumed to be alike, but uneven nodes hold fewer VMs: then only the
        # consistency of the inventory can be judged.
        expected = found
    shape = f", a {host.shape}," if host.shape else ""
    if found != expected:
        yield _differs(
            view,
            f"the host{shape} offers {found} {name} and has room for {expected} "
            f"(NUMA nodes: {host.cells_source})",
        )
    elif found:
        max_unit = root.inventories[name].max_unit
        offer = host_scheme_of(policy).offers(policy, vm_class, root.mode, 1)
        if max_unit != (right := offer.inventories[name].max_unit):
            yield _differs(view, f"max_unit of {name} is {max_unit}, should be {right}")
    if expected and trait not in root.traits:
        yield _differs(view, f"{trait} is missing", codes.TRAIT_DIFFERS)
    elif trait in root.traits and not expected:
        words = (
            f"{trait} is set, without room for slots: Nova never removes a trait "
            "that provider.yaml once gave, and this trait keeps general VMs off"
        )
        differs = _differs(view, words, codes.TRAIT_DIFFERS)
        remedy = differs.remedy if found else remove_trait(root.uuid, trait)
        yield differs._replace(remedy=remedy)
    for resource, amount in guaranteed_iops(vm_class).items() if expected else ():
        has = root.total(resource)
        if has < amount:
            yield _differs(view, f"{has} {resource}, and one VM is guaranteed {amount}")


def _differs(
    view: HostView, words: str, code: str = codes.INVENTORY_DIFFERS
) -> Finding:
    """Return a finding whose remedy is the command that configures the host."""
    mode = "shared" if view.root.mode == "open" else view.root.mode
    memory_gb = view.root.total("MEMORY_MB") // 1024
    remedy = (
        f"nova-perfvm host config --topology {view.compute.shape or 'SHAPE'} "
        f"--mode {mode} --reserve CORES --memory-gb {memory_gb or 'GB'} "
        "--policy POLICY"
    )
    return Finding.of(code, view.host, words, remedy)
