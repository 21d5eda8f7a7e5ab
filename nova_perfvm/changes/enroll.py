# SPDX-License-Identifier: Apache-2.0
"""What makes a host elastic, in an order that fails closed.

First the host is isolated, so that nothing without units comes to it any more;
last comes the trait, without which nothing with units does.  Between the two
nobody comes, and whoever is there is counted.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from nova_perfvm import constants as const
from nova_perfvm.changes import steps as do
from nova_perfvm.diagnose.residents import divide
from nova_perfvm.diagnose.sizing import SlotsError, desired_inventory, host_slots
from nova_perfvm.placement import units

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nova_perfvm.diagnose.residents import Shares
    from nova_perfvm.facts.elastic_host import ElasticHost, Provider
    from nova_perfvm.placement.units import Child
    from nova_perfvm.policy import Policy

DEFAULT_AGGREGATE = "perfvm-elastic"


def plan_enroll(
    policy: Policy,
    view: ElasticHost,
    *,
    slots: int | None = None,
    aggregate: str = DEFAULT_AGGREGATE,
    backfill: bool = False,
) -> do.Plan:
    """Return the steps from what is seen of a host to what should be.

    :param slots: see :func:`nova_perfvm.diagnose.sizing.host_slots`
    :param aggregate: the isolated aggregate for the host, unless it is in one
    :param backfill: give units to VMs that run on the host without them
    """
    if policy.placement != "units":
        refusal = (
            f"the policy says placement: {policy.placement}, and elastic hosts need "
            "units: name the policy file with --policy, or change it"
        )
        return do.Plan(refusals=(refusal,))
    try:
        slots = host_slots(policy, view, slots)
    except SlotsError as exc:
        return do.Plan(refusals=(str(exc),))
    children = units.children(policy, view.root.name, slots)
    refusals = list(_in_the_way(view, children))
    shares = divide(policy, view, children)
    refusals.extend(shares.faults)
    if shares.lacking and not backfill and not refusals:
        names = ", ".join(view.describe(consumer) for consumer in shares.lacking)
        refusals.append(
            f"{view.host} has VMs without units: {names}: move them away, or give "
            "them units with --backfill"
        )
    if refusals:
        return do.Plan(refusals=tuple(refusals))
    return do.Plan(tuple(_steps(view, children, aggregate, shares)))


def plan_close(view: ElasticHost) -> do.Plan:
    """Return the step that keeps VMs with units off a host, if they may come."""
    if not view.enrolled:
        return do.Plan()
    return do.Plan((_set_root(view, view.root.traits - {const.TRAIT_ELASTIC}),))


def _steps(
    view: ElasticHost,
    children: Sequence[Child],
    aggregate: str,
    shares: Shares,
) -> Iterator[do.Change]:
    lacking = shares.lacking
    yield from _names(view, children)
    traits = view.root.traits
    if lacking and view.enrolled:
        # Who came now could take what belongs to those who lack units.
        traits = traits - {const.TRAIT_ELASTIC}
        yield _set_root(view, traits)
    yield from _isolate(view, aggregate)
    service = view.service
    if lacking and service.enabled:
        yield do.SetService(service.id, view.host, enabled=False)
    found = {provider.name: provider for provider in view.children}
    for child in children:
        yield from _child(view, child, found.get(child.name))
    wanted = {child.name for child in children}
    for name, provider in found.items():
        if name not in wanted:
            yield from remove_child(provider)
    yield from _give(view, shares, found)
    desired = traits | {const.TRAIT_ELASTIC}
    if view.mode == "dedicated":
        desired |= {const.TRAIT_HIGH_PERFORMANCE}
    else:
        # General VMs, which this trait keeps away, are welcome here.
        desired -= {const.TRAIT_HIGH_PERFORMANCE}
    if desired != traits:
        yield _set_root(view, desired, before=traits)
    if service.interrupted or (lacking and service.enabled):
        yield do.SetService(service.id, view.host, enabled=True)


def _in_the_way(view: ElasticHost, children: Sequence[Child]) -> Iterator[str]:
    """Return what a change of the children would break."""
    wanted = {child.name: child for child in children}
    for name, other in view.elsewhere.items():
        yield (
            f"provider {name} ({other}) exists, and not below {view.root.name}: "
            "delete it (openstack resource provider delete)"
        )
    for provider in view.children:
        units = provider.units()
        child = wanted.get(provider.name)
        if not units:
            continue
        names = ", ".join(view.describe(consumer) for consumer in sorted(units))
        if child is None:
            yield (
                f"{provider.name} is to be removed, as {view.host} has "
                f"{len(children)} children under this policy, and is in use by "
                f"{names}: move them away"
            )
        elif max(units.values()) > child.max_unit or sum(units.values()) > child.total:
            yield (
                f"{provider.name} is to have {child.total} units, at most "
                f"{child.max_unit} a VM, and {sum(units.values())} are in use by "
                f"{names}: move them away"
            )
        elif provider.total(const.RC_UNIT) > child.total:
            yield (
                f"{provider.name} has {provider.total(const.RC_UNIT)} units and is to "
                f"have {child.total}, while it is in use by {names}: move them away"
            )


def _give(
    view: ElasticHost, shares: Shares, found: dict[str, Provider]
) -> Iterator[do.Change]:
    """Return each server the units that it lacks, or all that it has lost."""
    for consumer, lacking in shares.lacking.items():
        by_uuid = {_uuid(view, name, found): lacking[name] for name in lacking}
        name = view.describe(consumer)
        if consumer not in shares.lost:
            yield do.AddUnits(consumer, name, by_uuid)
            continue
        resources = {view.root.uuid: shares.lost[consumer]} | {
            uuid: {const.RC_UNIT: amount} for uuid, amount in by_uuid.items()
        }
        yield do.Allocate(consumer, name, resources)


def _names(view: ElasticHost, children: Sequence[Child]) -> Iterator[do.Change]:
    if const.RC_UNIT not in view.names:
        yield do.CreateName(const.RC_UNIT, "resource class")
    traits = {const.TRAIT_ELASTIC, const.TRAIT_HIGH_PERFORMANCE}
    for trait in sorted(traits | {child.trait for child in children}):
        if trait not in view.names:
            yield do.CreateName(trait, "trait")


def _isolate(view: ElasticHost, name: str) -> Iterator[do.Change]:
    if view.isolated_by:
        if not view.closed:
            # Nova tells Placement, and only logs where that fails.
            known = view.root.aggregates | {a.uuid for a in view.isolated_by}
            yield do.SetProviderAggregates(view.root.uuid, view.root.name, known)
        return
    found = next((a for a in view.aggregates if a.name == name), None)
    if found is None:
        yield do.CreateAggregate(name)
    if found is None or not found.isolates:
        yield do.IsolateAggregate(name, created=found is None)
    if found is None or view.host not in found.hosts:
        yield do.AddHost(name, view.host)
    elif found.uuid not in view.root.aggregates:
        known = view.root.aggregates | {found.uuid}
        yield do.SetProviderAggregates(view.root.uuid, view.root.name, known)


def _child(
    view: ElasticHost, child: Child, provider: Provider | None
) -> Iterator[do.Change]:
    if provider is None:
        new = child_uuid(view, child.name)
        yield do.CreateChild(view.root.uuid, new, child.name)
        yield do.SetTraits(new, child.name, frozenset({child.trait}))
        yield do.SetInventory(new, child.name, desired_inventory(child))
        return
    others = {t for t in provider.traits if not t.startswith(const.TRAIT_CHILD)}
    traits = frozenset(others | {child.trait})
    if traits != provider.traits:
        yield do.SetTraits(provider.uuid, child.name, traits, provider.traits)
    if dict(provider.inventories) != desired_inventory(child):
        yield do.SetInventory(provider.uuid, child.name, desired_inventory(child))


def remove_child(provider: Provider) -> Iterator[do.Change]:
    """Return the steps that delete a child, refused by Placement if it is in use."""
    if provider.inventories:
        yield do.SetInventory(provider.uuid, provider.name, {})
    yield do.DeleteChild(provider.uuid, provider.name)


def child_uuid(view: ElasticHost, name: str) -> str:
    """Return the UUID of a new child, the same in every run, so that two agree."""
    return str(uuid.uuid5(uuid.UUID(view.root.uuid), name))


def _uuid(view: ElasticHost, name: str, found: dict[str, Provider]) -> str:
    return found[name].uuid if name in found else child_uuid(view, name)


def _set_root(
    view: ElasticHost, traits: frozenset[str], before: frozenset[str] | None = None
) -> do.SetTraits:
    return do.SetTraits(
        view.root.uuid,
        view.root.name,
        traits,
        view.root.traits if before is None else before,
        opens=const.TRAIT_ELASTIC in traits,
    )
