# SPDX-License-Identifier: Apache-2.0
"""The steps that make a host an ordinary one again, in an order that fails closed.

The first step removes the traits, so that no VM with units comes any more; in the last
step the host leaves the isolated aggregate: until then no VM without units can arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from shlex import quote

from nova_perfvm import constants as const
from nova_perfvm.changes import steps as do
from nova_perfvm.changes.enroll import (
    AGGREGATE_PREFIXES,
    close_children,
    delete_detached,
    detach_child,
)
from nova_perfvm.diagnose.residents import holders
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import Aggregate, Provider
from nova_perfvm.placement.host_schemes import scheme_counting


def plan_unenroll(
    view: HostView, *, strip: bool = False, delete_children: bool = False
) -> do.Plan:
    """Return the steps that take a host out of the scheme.

    :param strip: remove the units from the allocations of the host's VMs, which keep
        running; otherwise the plan is refused while VMs hold units
    :param delete_children: delete children that earlier runs have detached
    """
    carrying = holders(view.children)
    if carrying and not strip:
        names = ", ".join(map(view.describe, carrying))
        refusal = (
            f"VMs on {view.host} carry {_noun(view)}: {names}: move them away: "
            f"openstack perfvm plan drain {quote(view.host)} --execute"
        )
        return do.Plan(refusals=(refusal,))
    steps = list(_steps(view, carrying))
    if delete_children:
        steps += delete_detached(view.detached)
    return do.Plan(tuple(steps))


def _noun(view: HostView) -> str:
    """Return the word for the resources of children that VMs of a host hold."""
    scheme = scheme_counting(n for child in view.children for n in child.inventories)
    return scheme.noun if scheme else "child providers"


def plan_forget(
    names: Iterable[str],
    aggregates: Sequence[Aggregate],
    detached: Iterable[Provider] = (),
    *,
    emptied: bool = False,
) -> do.Plan:
    """Return the steps that remove shared objects that no host needs any more.

    :param names: nova_perfvm's traits and resource classes that exist
    :param detached: detached children to delete
    :param emptied: treat aggregates as empty, because their hosts leave earlier
    """
    steps: list[do.Change] = [*delete_detached(detached)]
    steps += (
        do.DeleteAggregate(aggregate.name)
        for aggregate in aggregates
        if _goes(aggregate, emptied=emptied)
    )
    for name in sorted(names):
        kind = "resource class" if name in const.CHILD_CLASSES else "trait"
        # Dedicated hosts of the slots scheme have this trait, too.
        if name != const.TRAIT_HIGH_PERFORMANCE:
            steps.append(do.DeleteName(name, kind))
    return do.Plan(tuple(steps))


def _goes(aggregate: Aggregate, *, emptied: bool) -> bool:
    """Return whether to delete an aggregate: only nova_perfvm's, and without hosts.

    :param emptied: whether enrolled hosts will have left the aggregate
    """
    if aggregate.name == const.POLICY_AGGREGATE:
        return not aggregate.hosts
    return aggregate.made_by_enroll and (emptied or not aggregate.hosts)


def _steps(view: HostView, carrying: dict[str, frozenset[str]]) -> Iterator[do.Change]:
    root = view.root
    if view.enrolled:
        away = root.elastic_traits | {const.TRAIT_HIGH_PERFORMANCE}
        yield do.SetTraits(root.uuid, root.name, root.traits - away, root.traits)
    yield from close_children(view)
    for consumer, providers in carrying.items():
        yield do.RemoveUnits(consumer, view.describe(consumer), providers, _noun(view))
    for provider in view.children:
        traits = provider.traits - provider.elastic_traits
        yield from detach_child(replace(provider, traits=traits))
    stale = {a.uuid for a in view.cloud.aggregates if a.isolates} & root.aggregates
    for aggregate in view.isolated_by:
        yield do.RemoveHost(aggregate.name, view.host)
        stale.discard(aggregate.uuid)
    for aggregate in view.cloud.aggregates:
        if aggregate.made_by_enroll and aggregate.hosts <= {view.host}:
            yield do.DeleteAggregate(aggregate.name)
    if stale:
        known = root.aggregates - stale
        yield do.SetProviderAggregates(root.uuid, root.name, known)
    if view.compute.interrupted:
        yield do.SetService(view.compute.service, view.host, enabled=True)


def kept_aggregates(aggregates: Iterable[Aggregate]) -> Iterator[str]:
    """Yield a sentence for each aggregate that stays and may be nova_perfvm's."""
    for aggregate in aggregates:
        policy = aggregate.name == const.POLICY_AGGREGATE
        # An interrupted enroll leaves the aggregate without metadata.
        ours = aggregate.isolates or aggregate.name.startswith(AGGREGATE_PREFIXES)
        if (ours or policy) and not _goes(aggregate, emptied=True):
            yield (
                f"aggregate {aggregate.name} stays: it has hosts or metadata that "
                "nova_perfvm did not give it; if nobody needs it, take its hosts out, "
                "and: "
                f"openstack aggregate delete {quote(aggregate.name)}"
            )
