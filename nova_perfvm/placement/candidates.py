# SPDX-License-Identifier: Apache-2.0
"""Decide as Placement whether a host's providers can satisfy a request, and why not.

The same decision as ``GET /allocation_candidates``, for one provider tree at a time.
Placement's API returns only the hosts that can; this module gives the reasons for the
others.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from nova_perfvm import constants as const
from nova_perfvm.facts import Reason
from nova_perfvm.facts.demand import Demand
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.placement_request import Group
from nova_perfvm.facts.snapshot import Provider
from nova_perfvm.placement.host_schemes import HOST_SCHEMES

DISABLED = "COMPUTE_STATUS_DISABLED"


# Whether a part is a suffixed group; resources, required and forbidden traits.
_Kind = tuple[bool, frozenset[tuple[str, int]], frozenset[str], frozenset[str]]


class Answer(NamedTuple):
    """Placement's answer to one request for one host.

    :ivar reasons: why the host has no candidate; empty if it has one
    :ivar allocation: the first candidate: {provider's UUID: {resource class: amount}}
    """

    reasons: tuple[Reason, ...]
    allocation: Mapping[str, Mapping[str, int]] = {}


class _Part(NamedTuple):
    """Resources to take from one provider.

    A suffixed group is one part; each resource class of the unsuffixed group is one.
    """

    group: Group
    resources: Mapping[str, int]
    # Whether this is a suffixed group, so that its provider needs the group's traits.
    whole: bool


def ask(view: HostView, demand: Demand, *, isolated: bool) -> Answer:
    """Return Placement's answer to a request for one host.

    :param isolated: whether aggregates that require a trait admit only requests with
        that trait: [scheduler]enable_isolated_aggregate_filtering
    """
    if not view.tree:
        return Answer((Reason(const.PLACEMENT_NO_PROVIDER, {}),))
    reasons = list(_barred(view, demand, isolated=isolated))
    parts = list(_parts(demand))
    reasons += _traits(view, demand.groups[0])
    for trait in sorted(demand.root_required - view.root.traits):
        reasons.append(Reason(const.PLACEMENT_TRAIT_MISSING, {"trait": trait}))
    for part in parts:
        reasons += _why_not(view, part)
    if reasons:
        return Answer(tuple(reasons))
    found = None if _too_many(view, parts) else _fill(view, demand, parts, [])
    if found is None:
        return Answer((Reason(const.PLACEMENT_GROUPS, {"groups": len(parts)}),))
    return Answer((), _summed(found))


def shortfall(provider: Provider, resource_class: str, amount: int) -> str | None:
    """Return why a provider cannot give an amount; None if it can.

    Checks the inventory's max_unit, min_unit, step_size and free capacity.
    """
    inventory = provider.inventories.get(resource_class)
    if inventory is None:
        return "no inventory"
    if amount > inventory.max_unit:
        return f"max_unit is {inventory.max_unit}"
    if amount < inventory.min_unit:
        return f"min_unit is {inventory.min_unit}"
    if amount % inventory.step_size:
        return f"step_size is {inventory.step_size}"
    if provider.used(resource_class) + amount > inventory.capacity:
        return "full"
    return None


def _barred(view: HostView, demand: Demand, *, isolated: bool) -> Iterator[Reason]:
    """Yield the reasons for which Nova's prefilters exclude the host.

    The trait of a disabled service, and aggregates that require a trait.

    :param isolated: see :func:`ask`
    """
    if DISABLED in view.tree[0].traits and view.compute.enabled:
        # The service is enabled, but the trait of a disabled service remains.  For a
        # disabled service another rule gives the reason.
        yield Reason(
            const.PLACEMENT_TRAIT_FORBIDDEN,
            {"trait": DISABLED, "provider": view.tree[0].name},
        )
    if not isolated:
        return
    for aggregate in view.isolating:
        missing = aggregate.required_traits - demand.required
        if missing:
            yield Reason(
                const.PLACEMENT_ISOLATED,
                {"aggregate": aggregate.name, "missing": sorted(missing)},
            )


def _parts(demand: Demand) -> Iterator[_Part]:
    first, *others = demand.groups
    for name, amount in sorted(first.resources.items()):
        yield _Part(first, {name: amount}, whole=False)
    for group in others:
        yield _Part(group, group.resources, whole=True)


def _traits(view: HostView, group: Group) -> Iterator[Reason]:
    """Yield the reasons for which traits of the unsuffixed group exclude the host.

    A reason for each required trait that no provider has, and for each forbidden trait
    that the root provider has.
    """
    everything = {trait for provider in view.providers for trait in provider.traits}
    for trait in sorted(group.required - everything):
        yield Reason(const.PLACEMENT_TRAIT_MISSING, {"trait": trait})
    for trait in sorted(group.forbidden & view.tree[0].traits):
        yield Reason(
            const.PLACEMENT_TRAIT_FORBIDDEN,
            {"trait": trait, "provider": view.tree[0].name},
        )


def _suits(provider: Provider, part: _Part) -> bool:
    """Return whether a provider's traits suit a part, however full the provider is."""
    if part.group.forbidden & provider.traits:
        return False
    return not part.whole or part.group.required <= provider.traits


def _why_not(view: HostView, part: _Part) -> Iterator[Reason]:
    """Yield the reasons for which every provider fails to give a part."""
    offering = [
        provider
        for provider in view.providers
        if part.resources.keys() <= provider.inventories.keys()
    ]
    suiting = [provider for provider in offering if _suits(provider, part)]
    if not suiting:
        yield from _nowhere(view, part, offering)
        return
    wanted = part.resources.items()
    if any(all(not shortfall(p, n, a) for n, a in wanted) for p in suiting):
        return
    for scheme in HOST_SCHEMES.values():
        if reason := scheme.shortage(part.resources, suiting):
            yield reason
            return
    for name, amount in wanted:
        if all(shortfall(provider, name, amount) for provider in suiting):
            yield _too_full(suiting[0], name, amount)


def _nowhere(view: HostView, part: _Part, offering: list[Provider]) -> Iterator[Reason]:
    """Yield why no provider suits a part: which inventories or traits are missing."""
    if not offering:
        missing = {
            name: amount
            for name, amount in part.resources.items()
            if not any(name in p.inventories for p in view.providers)
        } or part.resources
        for name, amount in missing.items():
            yield Reason(
                const.PLACEMENT_NO_INVENTORY, {"class": name, "amount": amount}
            )
    elif part.whole:
        everywhere = {trait for provider in offering for trait in provider.traits}
        absent = sorted(part.group.required - everywhere)
        for trait in absent:
            yield Reason(const.PLACEMENT_TRAIT_MISSING, {"trait": trait})
        if not absent:
            yield Reason(const.PLACEMENT_GROUPS, {"groups": 1})
    # For the unsuffixed group, _traits() has already yielded the reasons.


def _too_full(provider: Provider, name: str, amount: int) -> Reason:
    inventory = provider.inventories[name]
    return Reason(
        const.PLACEMENT_RESOURCE,
        {
            "class": name,
            "amount": amount,
            "provider": provider.name,
            "shortfall": shortfall(provider, name, amount),
            "total": inventory.total,
            "reserved": inventory.reserved,
            "ratio": inventory.allocation_ratio,
            "capacity": inventory.capacity,
            "used": provider.used(name),
        },
    )


def _alike(part: _Part) -> _Kind:
    """Return a key that is equal for parts that could swap their providers."""
    group = part.group
    resources = frozenset(part.resources.items())
    return part.whole, resources, group.required, group.forbidden


def _too_many(view: HostView, parts: list[_Part]) -> bool:
    """Return whether equal groups, such as PCI devices, exceed the providers' room.

    Trying all combinations, as :func:`_fill` does, would take too long to find out.
    """
    several: dict[_Kind, list[_Part]] = {}
    for part in parts:
        if part.whole and part.resources:
            several.setdefault(_alike(part), []).append(part)
    for part, *others in several.values():
        name, amount = min(part.resources.items())
        room = sum(
            max(0, inventory.capacity - provider.used(name)) // amount
            for provider in view.providers
            if _suits(provider, part)
            if (inventory := provider.inventories.get(name))
        )
        if room < 1 + len(others):
            return True
    return False


def _fill(
    view: HostView,
    demand: Demand,
    parts: list[_Part],
    chosen: list[tuple[_Part, Provider]],
) -> list[tuple[_Part, Provider]] | None:
    """Choose a provider for each part by depth-first search; None without a solution.

    :param chosen: the providers chosen so far, for the first parts
    """
    if len(chosen) == len(parts):
        return chosen if _complete(demand, chosen) else None
    part = parts[len(chosen)]
    providers = view.providers
    if chosen and _alike(part) == _alike(chosen[-1][0]):
        # Of equal parts, a later part skips the providers before the earlier part's:
        # those combinations have been tried with the parts swapped.
        last = chosen[-1][1]
        providers = tuple(itertools.dropwhile(lambda p: p is not last, providers))
    for provider in providers:
        taken = _summed(chosen).get(provider.uuid, {})
        if (
            part.whole
            and demand.group_policy == "isolate"
            and any(other.whole and p is provider for other, p in chosen)
        ):
            continue
        if not _suits(provider, part) or any(
            shortfall(provider, name, amount + taken.get(name, 0))
            for name, amount in part.resources.items()
        ):
            continue
        found = _fill(view, demand, parts, [*chosen, (part, provider)])
        if found is not None:
            return found
    return None


def _complete(demand: Demand, chosen: list[tuple[_Part, Provider]]) -> bool:
    # The providers of the unsuffixed group have to have its traits together.
    traits = {t for part, p in chosen if not part.whole for t in p.traits}
    return demand.groups[0].required <= traits


def _summed(
    chosen: list[tuple[_Part, Provider]],
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for part, provider in chosen:
        taken = found.setdefault(provider.uuid, {})
        for name, amount in part.resources.items():
            taken[name] = taken.get(name, 0) + amount
    return found
