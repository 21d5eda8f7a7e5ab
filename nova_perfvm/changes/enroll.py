# SPDX-License-Identifier: Apache-2.0
"""The steps that make a host elastic, in an order that fails closed.

The first step isolates the host, so that VMs without units cannot come any more; the
last step sets the trait that VMs with units require.  Between the two no VM can arrive,
and the VMs on the host are counted.

A host that was enrolled with another number of children is closed first.  Then the host
moves from one isolated aggregate to the other: for a moment it is in both, where no
flavor can reach it; the host is never outside of isolation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from shlex import quote
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.changes import steps as do
from nova_perfvm.diagnose.elastic_slots import SlotsError, slots_to_enroll
from nova_perfvm.diagnose.residents import Shares, divide
from nova_perfvm.facts.children import child_uuid
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Aggregate, Inventory, Provider
from nova_perfvm.generate import labels
from nova_perfvm.placement.candidates import DISABLED
from nova_perfvm.placement.host_schemes import (
    Child,
    HostScheme,
    enrolled_by_another,
    host_scheme_of,
    names_of,
)
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.policy import Policy

_NONE: Final = Inventory(0, 0)
# Prefixes of the names of aggregates that enrolling creates.
AGGREGATE_PREFIXES: Final = ("perfvm-elastic", "perfvm-cells")


def aggregate_name(trait: str) -> str:
    """Return the name of the aggregate for hosts with a trait."""
    return trait.removeprefix("CUSTOM_").lower().replace("_", "-")


def plan_enroll(
    policy: Policy,
    view: HostView,
    *,
    slots: int | None = None,
    backfill: bool = False,
    delete_children: bool = False,
) -> do.Plan:
    """Return the steps that make a host elastic, from its present state.

    :param slots: see :func:`nova_perfvm.diagnose.elastic_slots.slots_to_enroll`
    :param backfill: give the VMs that run on the host the units that they should hold
    :param delete_children: delete children that earlier runs have detached
    """
    scheme, hosts = scheme_of(policy), host_scheme_of(policy)
    if not scheme.enrolls:
        needed = names_of(lambda other: other.scheme.enrolls)
        refusal = (
            f"the policy says placement: {scheme.name}, and enrolled hosts need "
            f"{needed}: name the policy file with --policy, or change it"
        )
        return do.Plan(refusals=(refusal,))
    if other := enrolled_by_another(policy, view):
        refusal = (
            f"{view.host} is enrolled by placement: {other}, and the policy says "
            f"{scheme.name}: openstack perfvm host unenroll {quote(view.host)}"
        )
        return do.Plan(refusals=(refusal,))
    try:
        slots = slots_to_enroll(policy, view, slots)
    except SlotsError as exc:
        return do.Plan(refusals=(str(exc),))
    if fault := hosts.unfit(policy, view):
        return do.Plan(refusals=(fault,))
    trait = scheme.enrolled_trait(policy)
    aggregate = aggregate_name(trait)
    children = hosts.children(policy, view, slots)
    refusals = list(_in_the_way(hosts, view, children, trait, aggregate))
    shares = divide(policy, view, children)
    refusals.extend(shares.faults)
    if not backfill and not refusals:
        refusals.extend(_unsettled(hosts, view, children, shares))
    if refusals:
        return do.Plan(refusals=tuple(refusals))
    steps = list(_steps(policy, view, children, shares))
    if delete_children:
        steps += delete_detached(view.detached, {child.name for child in children})
    return do.Plan(tuple(steps))


def _label(policy: Policy, view: HostView) -> str:
    """Return the label that a host lacks; empty if it has a label or needs none.

    The label allows all classes, as hosts of one aggregate may have different modes;
    units and traits keep the classes apart on these hosts.
    """
    if policy.managed_hosts == "all" or view.facts.labels:
        return ""
    return labels.label_of(policy.classes)


def plan_close(view: HostView) -> do.Plan:
    """Return the steps that remove the traits by which VMs with units find a host."""
    root = [_set_root(view, view.root.traits - view.root.elastic_traits)]
    return do.Plan((*(root if view.enrolled else ()), *close_children(view)))


def close_children(view: HostView) -> Iterator[do.Change]:
    """Yield the steps that remove the traits by which requests find children."""
    for child in view.children:
        if away := child.elastic_traits:
            traits = child.traits - away
            yield do.SetTraits(child.uuid, child.name, traits, child.traits)


def _steps(
    policy: Policy, view: HostView, children: Sequence[Child], shares: Shares
) -> Iterator[do.Change]:
    hosts, trait = host_scheme_of(policy), scheme_of(policy).enrolled_trait(policy)
    changing = bool(shares.lacking or shares.surplus)
    yield from _names(view, trait, children)
    traits = view.root.traits
    if view.enrolled and (changing or view.root.elastic_traits != {trait}):
        # A VM that came now could take the resources of VMs that lack units, or come by
        # a flavor for the old number of children.
        traits = traits - view.root.elastic_traits
        yield _set_root(view, traits)
    yield from _isolate(view, trait, _label(policy, view))
    yield from _leave_others(view, trait)
    compute = view.compute
    if changing and compute.enabled:
        yield do.SetService(compute.service, view.host, enabled=False)
    found = {provider.name: provider for provider in view.children}
    wanted = {child.name for child in children}
    strangers = [p for p in view.detached if p.name in wanted and not view.is_own(p)]
    yield from delete_detached(strangers)
    known = {p.name: p for p in view.detached if p not in strangers} | found
    for child in children:
        yield from _child(view, child, known.get(child.name))
    yield from _give(view, shares, known)
    for consumer, providers in shares.surplus.items():
        yield do.RemoveUnits(consumer, view.describe(consumer), providers, hosts.noun)
    for name, provider in found.items():
        if name not in wanted:
            yield from detach_child(provider)
    if compute.interrupted or (changing and compute.enabled):
        # nova-compute then reads the traits again, and may write traits that it read
        # before: Placement accepts them, because Nova sends the newest generation with
        # old traits (set_traits_for_provider() of nova/scheduler/client/report.py).
        # Therefore the trait of enrolling is set last, which makes nova-compute's
        # generation stale.
        yield do.SetService(compute.service, view.host, enabled=True)
        traits = traits - {DISABLED}
    desired = traits - {const.TRAIT_HIGH_PERFORMANCE}
    desired |= hosts.root_traits(policy, view.root.mode)
    if desired != traits:
        yield _set_root(view, desired, before=traits)


def _in_the_way(
    hosts: HostScheme,
    view: HostView,
    children: Sequence[Child],
    trait: str,
    aggregate: str,
) -> Iterator[str]:
    """Yield the reasons why the children or the aggregate cannot be changed."""
    for found in _others(view, trait):
        if found.name == aggregate:
            yield (
                f"aggregate {aggregate} is for hosts with "
                f"{', '.join(sorted(found.elastic_traits - {trait}))}, and policy "
                f"hosts have {trait}: openstack aggregate set --name NEW "
                f"{quote(aggregate)}"
            )
    wanted = {child.name: child for child in children}
    for name, other in view.elsewhere.items():
        yield (
            f"provider {name} ({other}) exists outside of the tree of "
            f"{view.root.name}: openstack resource provider show --allocations {other} "
            "shows its parent and consumers; delete it when it has no consumers"
        )
    for provider in view.children:
        child = wanted.get(provider.name)
        if child and hosts.scheme.steers and not view.is_own(provider):
            yield (
                f"nova-scheduler does not know {provider.name} ({provider.uuid}): it "
                f"was created for another provider than {view.host}'s: openstack "
                f"perfvm host unenroll {quote(view.host)}, and enroll it again"
            )
        held = provider.held_of_child()
        names = ", ".join(view.describe(consumer) for consumer in sorted(held))
        if child is None or not held:
            continue
        for name in sorted(provider.inventories):
            amounts = [taken.get(name, 0) for taken in held.values()]
            left = child.inventories.get(name, _NONE)
            if max(amounts) > left.max_unit or sum(amounts) > left.total:
                yield (
                    f"{provider.name} is to have {left.total} {name}, at most "
                    f"{left.max_unit} a VM, and {sum(amounts)} are in use by "
                    f"{names}: move them away"
                )
            elif hosts.by_slots and provider.total(name) > left.total:
                # VMs hold part of the child, but the scheme counts it by its total.
                yield (
                    f"{provider.name} has {provider.total(name)} {name} and is to have "
                    f"{left.total}, while it is in use by {names}: move them away"
                )


def _unsettled(
    hosts: HostScheme, view: HostView, children: Sequence[Child], shares: Shares
) -> Iterator[str]:
    """Yield the reasons to change allocations, which only --backfill does."""
    if shares.lacking:
        names = ", ".join(view.describe(consumer) for consumer in shares.lacking)
        yield (
            f"{view.host} has VMs without {hosts.noun}: {names}: move them away, or "
            f"give them {hosts.noun} with --backfill"
        )
    if shares.surplus:
        names = ", ".join(view.describe(consumer) for consumer in shares.surplus)
        yield (
            f"{view.host} has {len(children)} children under this policy, and VMs "
            f"hold {hosts.noun} of other children: {names}: move them away, or remove "
            "that part of their allocations with --backfill"
        )


def _give(
    view: HostView, shares: Shares, known: dict[str, Provider]
) -> Iterator[do.Change]:
    """Yield the steps that add the resources that servers lack to their allocations."""
    for consumer, lacking in shares.lacking.items():
        resources: dict[str, dict[str, int]] = {
            _uuid(view, child, known): dict(amounts)
            for child, amounts in lacking.items()
        }
        if consumer in shares.lost:
            resources[view.root.uuid] = shares.lost[consumer]
        yield do.Allocate(consumer, view.describe(consumer), resources)


def _names(
    view: HostView, trait: str, children: Sequence[Child]
) -> Iterator[do.Change]:
    """Yield the steps that create missing traits and resource classes in Placement."""
    for name in sorted({name for child in children for name in child.inventories}):
        if name not in view.cloud.names:
            yield do.CreateName(name, "resource class")
    traits = {trait, const.TRAIT_HIGH_PERFORMANCE}
    for name in sorted(traits | {child.trait for child in children}):
        if name not in view.cloud.names:
            yield do.CreateName(name, "trait")


def _isolate(view: HostView, trait: str, label: str) -> Iterator[do.Change]:
    """Yield the steps that put the host into an aggregate for exactly this trait.

    :param label: for the host; empty for none
    """
    isolating = [a for a in view.isolated_by if a.elastic_traits == {trait}]
    if isolating:
        mine = {a.uuid for a in isolating}
        if label:
            yield do.IsolateAggregate(isolating[0].name, trait, label=label)
        known = view.root.aggregates
        if not mine & known:
            # Nova adds the host to Placement's aggregate, too, but only logs a failure.
            known |= mine
        known -= {a.uuid for a in _others(view, trait) if view.host not in a.hosts}
        if known != view.root.aggregates:
            yield do.SetProviderAggregates(view.root.uuid, view.root.name, known)
        return
    name = aggregate_name(trait)
    found = next((a for a in view.cloud.aggregates if a.name == name), None)
    if found is None:
        yield do.CreateAggregate(name)
    if found is None or not found.isolates or (label and not found.labels):
        yield do.IsolateAggregate(name, trait, created=found is None, label=label)
    if found is None or view.host not in found.hosts:
        yield do.AddHost(name, view.host)
    elif found.uuid not in view.root.aggregates:
        known = view.root.aggregates | {found.uuid}
        yield do.SetProviderAggregates(view.root.uuid, view.root.name, known)


def _others(view: HostView, trait: str) -> list[Aggregate]:
    """Return the aggregates with elastic traits other than ``trait``."""
    return [a for a in view.cloud.aggregates if a.elastic_traits - {trait}]


def _leave_others(view: HostView, trait: str) -> Iterator[do.Change]:
    """Yield the steps that take a host out of aggregates for other traits."""
    for aggregate in _others(view, trait):
        if view.host in aggregate.hosts:
            yield do.RemoveHost(aggregate.name, view.host)
        if aggregate.made_by_enroll and aggregate.hosts <= {view.host}:
            yield do.DeleteAggregate(aggregate.name)


def _child(
    view: HostView, child: Child, provider: Provider | None
) -> Iterator[do.Change]:
    if provider is None:
        new = _uuid(view, child.name, {})
        yield do.CreateChild(new, child.name, view.root.uuid)
        yield do.SetTraits(new, child.name, frozenset({child.trait}))
        yield do.SetInventory(new, child.name, child.inventories)
        return
    if provider in (*view.detached, *view.strayed):
        yield do.AdoptChild(provider.uuid, child.name, view.root.uuid)
    others = {t for t in provider.traits if not t.startswith(const.TRAIT_CHILD)}
    traits = frozenset(others | {child.trait})
    if traits != provider.traits:
        yield do.SetTraits(provider.uuid, child.name, traits, provider.traits)
    if dict(provider.inventories) != child.inventories:
        yield do.SetInventory(provider.uuid, child.name, child.inventories)


def detach_child(provider: Provider) -> Iterator[do.Change]:
    """Yield the steps that empty a child and take it out of its host's tree.

    The provider is not deleted.  Placement refuses to empty a provider in use.
    """
    if provider.inventories:
        yield do.SetInventory(provider.uuid, provider.name, {})
    if provider.traits:
        none: frozenset[str] = frozenset()
        yield do.SetTraits(provider.uuid, provider.name, none, provider.traits)
    yield do.DetachChild(provider.uuid, provider.name)


def delete_detached(
    detached: Iterable[Provider], wanted: AbstractSet[str] = frozenset()
) -> Iterator[do.Change]:
    """Yield the steps that delete detached children, in descending order of names.

    :param wanted: names of the children that the host should have, which stay
    """
    for provider in sorted(detached, key=lambda p: p.name, reverse=True):
        if provider.name not in wanted:
            yield do.DeleteChild(provider.uuid, provider.name)


def _uuid(view: HostView, name: str, known: dict[str, Provider]) -> str:
    """Return the UUID of a child; a new child gets the same UUID in every run."""
    if name in known:
        return known[name].uuid
    return child_uuid(view.root.uuid, name)


def _set_root(
    view: HostView, traits: frozenset[str], before: frozenset[str] | None = None
) -> do.SetTraits:
    return do.SetTraits(
        view.root.uuid,
        view.root.name,
        traits,
        view.root.traits if before is None else before,
    )
