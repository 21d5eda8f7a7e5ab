# SPDX-License-Identifier: Apache-2.0
"""Judge each host for a request: by Nova's prefilters, Placement, and the filters.

``explain``, plans and capacity use these verdicts.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.diagnose.nova_filters import FILTERS, IN_CLAIMS, FilterCase, Judge
from nova_perfvm.diagnose.nova_filters.aggregates import TENANT_KEY
from nova_perfvm.diagnose.nova_filters.numa import topology
from nova_perfvm.diagnose.nova_filters.perfvm import rules
from nova_perfvm.facts import Reason, prefilters
from nova_perfvm.facts.demand import Demand, Request
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.prefilters import Options, is_on, root_traits
from nova_perfvm.facts.snapshot import Aggregate, groups
from nova_perfvm.generate.options import (
    ENABLED_FILTERS,
    FileOptions,
    not_enforced,
    wanted,
)
from nova_perfvm.placement.candidates import Answer, ask
from nova_perfvm.placement.settings import (
    FALLBACK_QUERY,
    ISOLATED_AGGREGATES,
    SCHEDULER,
    is_true,
)
from nova_perfvm.policy import Policy
from nova_perfvm.rules import check_request
from nova_perfvm.rules.enabled_filters import FILTER

TENANT_FILTER: Final = "AggregateMultiTenancyIsolation"
_SERVICE_FILTER: Final = "ComputeFilter"


def _names(text: str) -> tuple[str, ...]:
    """Return the filter names in the value of an option."""
    return tuple(filter(None, re.split(r"[,\s]+", text)))


@dataclass(frozen=True)
class SchedulerSettings:
    """The settings of nova-scheduler that verdicts depend on.

    :ivar fallback: whether Nova asks Placement a second time, with VCPU in place of
        PCPU
    :ivar isolated: whether aggregates with required traits are reserved for requests
        with these traits
    :ivar filters: names of the enabled filters, in their order
    :ivar told: whether a nova.conf was read; else the settings are what the policy
        needs
    :ivar options: of nova.conf
    :ivar enforced: whether refusals by the rules count
    """

    fallback: bool
    isolated: bool
    filters: tuple[str, ...]
    told: bool
    options: Options
    enforced: bool

    @cached_property
    def strict(self) -> "SchedulerSettings":
        """The settings for plans, which obey the rules even if the filter does not.

        Plans move no VM to a host from which a filter may keep it.
        """
        more = (FILTER,) if self.told else (FILTER, TENANT_FILTER)
        names = dict.fromkeys((*self.filters, *more))
        return replace(self, enforced=True, filters=tuple(names))

    @cached_property
    def chain(self) -> tuple[Judge, ...]:
        """The filters in their order, then the checks of nova-compute's claim."""
        names = [n for n in (*self.filters, *IN_CLAIMS) if n in FILTERS]
        found = dict.fromkeys(FILTERS[name] for name in names)
        return tuple(one for one in found if self.enforced or one is not rules)

    @cached_property
    def prefilters(self) -> bool:
        """Whether options make prefilters ask Placement for more traits."""
        names = ("image_metadata_prefilter", "query_placement_for_image_type_support")
        return any(is_on(self.options, name) for name in names)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of enabled filters that cannot be judged without Nova."""
        return tuple(name for name in self.filters if name not in FILTERS)


@dataclass(frozen=True)
class HostVerdict:
    """The verdict of one host on a request.

    :ivar before: why the host is excluded before Placement is asked
    :ivar placement: why Placement does not offer the host
    :ivar filters: the reasons of each filter that refuses the host
    :ivar unjudged: filters that could not be judged, with the missing data
    """

    view: HostView
    before: tuple[Reason, ...] = ()
    placement: tuple[Reason, ...] = ()
    filters: tuple[tuple[Reason, ...], ...] = ()
    unjudged: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons of all layers, in the order in which Nova asks the layers."""
        return sum(self.filters, self.before + self.placement)

    @property
    def accepted(self) -> bool:
        """Return whether a server may come to the host."""
        return not (self.before or self.placement or self.filters)

    @property
    def code(self) -> str:
        """The codes of each layer's first reason; empty if the host accepts."""
        layers = (self.before, self.placement, *self.filters)
        return ", ".join(layer[0].code for layer in layers if layer)


def settings_for(
    policy: Policy, options: FileOptions | None = None
) -> SchedulerSettings:
    """Return the scheduler's settings.

    :param options: of nova.conf; None assumes the options that the policy needs
    """
    told = options is not None
    if options is None:
        options = {s.key: s.values[0] for s in wanted(policy, SCHEDULER)}
    return SchedulerSettings(
        fallback=not is_true(options.get(FALLBACK_QUERY.key, "")),
        isolated=is_true(options.get(ISOLATED_AGGREGATES.key, "")),
        filters=_names(options.get(ENABLED_FILTERS.key, ENABLED_FILTERS.values[0])),
        told=told,
        options=options,
        enforced=not any(not_enforced(options)),
    )


def judge(
    policy: Policy, request: Request, view: HostView, settings: SchedulerSettings
) -> HostVerdict:
    """Return the verdict on one host."""
    (found,) = judge_all(policy, request, (view,), settings)
    return found


def judge_all(
    policy: Policy,
    request: Request,
    views: Iterable[HostView],
    settings: SchedulerSettings,
) -> tuple[HostVerdict, ...]:
    """Return the verdict of each host; the request itself is checked only once."""
    wrong = check_request(policy, request.facts)
    found = []
    for view in views:
        before = tuple(_before(view, request, settings))
        placement = _ask(view, request, settings).reasons
        offered = not placement
        case = FilterCase(policy, request, view, settings.options, offered, wrong)
        found.append(HostVerdict(view, before, placement, *_filtered(case, settings)))
    return tuple(found)


def unjudged(
    settings: SchedulerSettings, request: Request, verdicts: Iterable[HostVerdict]
) -> tuple[str, ...]:
    """Return the filters and request keys that Nova judges but this model cannot.

    :param verdicts: on the request; if hosts accept it, only these hosts count
    """
    verdicts = tuple(verdicts)
    taking = tuple(verdict for verdict in verdicts if verdict.accepted) or verdicts
    of_hosts = (name for verdict in taking for name in verdict.unjudged)
    names = (
        *settings.unknown,
        *prefilters.unjudged(request.keys, settings.options),
        *request.unseen,
        *of_hosts,
    )
    return tuple(dict.fromkeys(names))


def _filtered(
    case: FilterCase, settings: SchedulerSettings
) -> tuple[tuple[tuple[Reason, ...], ...], tuple[str, ...]]:
    """Return the reasons of each refusing filter, and the filters not judged."""
    refused: list[tuple[Reason, ...]] = []
    untold: list[str] = []
    kept = False
    for one in settings.chain:
        if one is topology and kept:
            # The rules have refused the same NUMA nodes already, in better words.
            continue
        reasons = []
        for reason in one(case):
            if reason.code == const.NOT_JUDGED:
                untold.append("{filter} ({what})".format_map(reason.data))
            elif not any(reason in others for others in refused):
                reasons.append(reason)
        kept = kept or (one is rules and bool(reasons))
        refused += [tuple(reasons)] if reasons else []
    return tuple(refused), tuple(dict.fromkeys(untold))


def offer(
    policy: Policy,
    request: Request,
    view: HostView,
    settings: SchedulerSettings,
    wrong: tuple[Reason, ...] | None = None,
) -> Mapping[str, Mapping[str, int]] | None:
    """Return the allocation that Placement would give on a host that takes a request.

    :param wrong: the result of :func:`.rules.check_request`; None to compute it
    :returns: by the provider's UUID; None if the host does not take the request
    """
    case = FilterCase(policy, request, view, settings.options, wrong=wrong)
    if any(
        reason.code != const.NOT_JUDGED
        for one in settings.chain
        for reason in one(case)
    ) or any(_before(view, request, settings)):
        return None
    answer = _ask(view, request, settings)
    return None if answer.reasons else answer.allocation


def _before(
    view: HostView, request: Request, settings: SchedulerSettings
) -> Iterator[Reason]:
    """Yield why Nova excludes a host before it asks Placement."""
    host = view.compute
    if request.server and request.server in {one.id for one in view.servers}:
        yield Reason(const.NOVA_SAME_HOST, {})
    if not host.enabled and _SERVICE_FILTER not in settings.filters:
        yield Reason(const.SERVICE_DISABLED, {"why": host.disabled_reason or ""})
    if (group := request.group) is not None:
        needed = groups.FILTERS.get(group.policy)
        if needed is not None and needed not in settings.filters:
            data = {"group": str(group), "filter": needed}
            yield Reason(const.NOVA_GROUP_POLICY, data)
    zone = request.availability_zone
    if zone and not view.in_zone(zone):
        yield Reason(
            const.NOVA_AVAILABILITY_ZONE,
            {"found": host.availability_zone, "expected": zone},
        )
    if settings.options and request.project:
        yield from _of_project(view, request.project, settings.options)


def _of_project(view: HostView, project: str, options: Options) -> Iterator[Reason]:
    """Yield the reason if a host is in no aggregate of a project.

    See ``require_tenant_aggregate`` of nova.scheduler.request_filter: any key may name
    the project if another key, of any value, begins with ``filter_tenant_id``.
    """
    if not is_on(options, "limit_tenants_to_placement_aggregate"):
        return
    needs = is_on(options, "placement_aggregate_required_for_tenants")
    mine = _made_for(project, view.cloud.aggregates)
    here = view.root.aggregates if view.tree else frozenset()
    if (mine or needs) and mine.isdisjoint(here):
        yield Reason(const.PLACEMENT_TENANT, {"project": project})


def _made_for(project: str, aggregates: Iterable[Aggregate]) -> frozenset[str]:
    """Return the UUIDs of the aggregates that Nova takes for a project's."""
    return frozenset(
        aggregate.uuid
        for aggregate in aggregates
        if project in aggregate.metadata.values()
        and any(key.startswith(TENANT_KEY) for key in aggregate.metadata)
    )


def required_aggregates(
    request: Request, options: Options, aggregates: Collection[Aggregate]
) -> Iterator[frozenset[str]]:
    """Yield UUIDs of aggregates; Nova asks for root providers in one of each set."""
    zone = request.availability_zone
    found = [frozenset(a.uuid for a in aggregates if zone and a.zone == zone)]
    if request.project and is_on(options, "limit_tenants_to_placement_aggregate"):
        found.append(_made_for(request.project, aggregates))
    yield from filter(None, found)


def demands(request: Request, options: Options) -> tuple[Demand, Demand | None]:
    """Return the demands that Nova sends to Placement: with PCPU, and the fallback."""
    first, other = request.demand, request.fallback
    more = root_traits(request.keys, options) - root_traits(request.keys, {})
    if not more:
        return first, other
    root = first.root_required | more
    second = None if other is None else replace(other, root_required=root)
    return replace(first, root_required=root), second


def _ask(view: HostView, request: Request, settings: SchedulerSettings) -> Answer:
    """Return Placement's answer for a host, with the fallback query if needed."""
    demand, fallback = request.demand, request.fallback
    if settings.prefilters:
        demand, fallback = demands(request, settings.options)
    answer = ask(view, demand, isolated=settings.isolated)
    if not answer.reasons or not settings.fallback or fallback is None:
        return answer
    other = ask(view, fallback, isolated=settings.isolated)
    if other.reasons and any("PCPU" in p.inventories for p in view.tree):
        # The reasons of the first query tell more about a host with PCPU.
        return answer
    return other
