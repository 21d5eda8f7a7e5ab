# SPDX-License-Identifier: Apache-2.0
"""Ask Placement for allocation candidates as nova-scheduler does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from urllib.parse import urlencode

from nova_perfvm.cloud.api import API
from nova_perfvm.cloud.errors import openstack_errors
from nova_perfvm.diagnose.verdicts import (
    SchedulerSettings,
    demands,
    required_aggregates,
)
from nova_perfvm.facts.demand import Demand, Request
from nova_perfvm.facts.snapshot import Aggregate
from nova_perfvm.placement.candidates import DISABLED


def offered(
    api: API,
    request: Request,
    settings: SchedulerSettings,
    aggregates: Sequence[Aggregate],
) -> frozenset[str]:
    """Return the UUIDs of the root providers that have allocation candidates.

    All candidates are read, whereas Nova reads only the first 1,000
    ([scheduler]max_placement_results).

    :raises CloudError: when the request fails, for example because Placement does not
        know a trait or a resource class
    """
    demand, fallback = demands(request, settings.options)
    required = list(required_aggregates(request, settings.options, aggregates))
    found = _ask(api, demand, settings, aggregates, required)
    if settings.fallback and fallback is not None:
        found |= _ask(api, fallback, settings, aggregates, required)
    return found


def _ask(
    api: API,
    demand: Demand,
    settings: SchedulerSettings,
    aggregates: Sequence[Aggregate],
    required: Iterable[Collection[str]],
) -> frozenset[str]:
    query = urlencode(sorted(_query(demand, settings, aggregates, required)))
    answer = api.placement("GET", f"/allocation_candidates?{query}")
    with openstack_errors():
        summaries = answer["provider_summaries"]
        # A sharing provider appears in a candidate too, and has a tree of its own.
        return frozenset(
            summaries[uuid].get("root_provider_uuid") or uuid
            for candidate in answer["allocation_requests"]
            for uuid in candidate["allocations"]
        )


def _query(
    demand: Demand,
    settings: SchedulerSettings,
    aggregates: Sequence[Aggregate],
    required: Iterable[Collection[str]],
) -> Iterator[tuple[str, str]]:
    if demand.group_policy:
        yield "group_policy", demand.group_policy
    yield "root_required", ",".join([*sorted(demand.root_required), f"!{DISABLED}"])
    if settings.isolated:
        isolating = [
            aggregate.uuid
            for aggregate in aggregates
            if aggregate.required_traits - demand.required
        ]
        if isolating:
            yield "member_of", f"!in:{','.join(isolating)}"
    for uuids in required:
        yield "member_of", f"in:{','.join(sorted(uuids))}"
    for group in demand.groups:
        if group.resources:
            asked = [f"{name}:{n}" for name, n in sorted(group.resources.items())]
            yield f"resources{group.suffix}", ",".join(asked)
        traits = [*sorted(group.required), *(f"!{t}" for t in sorted(group.forbidden))]
        if traits:
            yield f"required{group.suffix}", ",".join(traits)
