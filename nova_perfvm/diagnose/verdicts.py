# SPDX-License-Identifier: Apache-2.0
"""The verdict on each host: of the services, of Placement, and of the rules."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from nova_perfvm import constants as const
from nova_perfvm.diagnose import devices, groups
from nova_perfvm.facts import NUMACell, Reason, RequestFacts
from nova_perfvm.facts.demand import Request
from nova_perfvm.facts.host_view import HostView
from nova_perfvm.facts.snapshot import UNKNOWN
from nova_perfvm.generate.options import (
    ENABLED_FILTERS,
    FileOptions,
    not_enforced,
    wanted,
)
from nova_perfvm.placement.candidates import Answer, ask
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.placement.settings import (
    FALLBACK_QUERY,
    ISOLATED_AGGREGATES,
    SCHEDULER,
    is_true,
)
from nova_perfvm.policy import Policy
from nova_perfvm.rules import check_host, check_request, decide, resolve_class
from nova_perfvm.rules.cells import unnamed
from nova_perfvm.rules.host.cpu_sets import NO_NUMA
from nova_perfvm.rules.slots import node_fits

TENANT_KEY: Final = "filter_tenant_id"

TENANT_FILTER: Final = "AggregateMultiTenancyIsolation"


@dataclass(frozen=True)
class SchedulerSettings:
    """What nova-scheduler is told that matters here.

    :ivar fallback: whether it asks Placement for VCPU in place of PCPU, too
    :ivar isolated: whether aggregates that want a trait are for such requests
    :ivar multitenancy: whether the aggregates of some projects are closed to others;
        None where nova.conf is not known: Nova's own default is no
    :ivar enforced: whether what the rules refuse counts
    """

    fallback: bool
    isolated: bool
    multitenancy: bool | None = None
    enforced: bool = True

    @cached_property
    def strict(self) -> "SchedulerSettings":
        """The settings for plans, which keep to the rules whatever the filter refuses.

        They send no VM to a host from which a filter may keep it.
        """
        return replace(self, enforced=True, multitenancy=self.multitenancy is not False)


@dataclass(frozen=True)
class HostVerdict:
    """The verdict of one host on a request.

    :ivar service: why the scheduler does not use the host at all
    :ivar placement: why Placement does not offer it
    :ivar rules: why the rules refuse it
    :ivar numa: why the filters of PCI devices and NUMA topologies do, asked last
    """

    view: HostView
    service: tuple[Reason, ...]
    placement: tuple[Reason, ...]
    rules: tuple[Reason, ...]
    numa: tuple[Reason, ...] = ()

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """All that stands against it, in the order in which Nova would see it."""
        return self.service + self.placement + self.rules + self.numa

    @property
    def accepted(self) -> bool:
        """Return whether a server may come there."""
        return not self.reasons

    @property
    def code(self) -> str:
        """The code of each layer's first reason; empty if accepted."""
        layers = (self.service, self.placement, self.rules, self.numa)
        return ", ".join(layer[0].code for layer in layers if layer)


def settings_for(
    policy: Policy, options: FileOptions | None = None
) -> SchedulerSettings:
    """Return the scheduler's settings.

    :param options: of its nova.conf; without them it is taken to be set up as
        the policy needs it
    """
    multitenancy = None
    if options is None:
        options = {s.key: s.values[0] for s in wanted(policy, SCHEDULER)}
    else:
        multitenancy = TENANT_FILTER in options.get(ENABLED_FILTERS.key, "")
    return SchedulerSettings(
        fallback=not is_true(options.get(FALLBACK_QUERY.key, "")),
        isolated=is_true(options.get(ISOLATED_AGGREGATES.key, "")),
        multitenancy=multitenancy,
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
    """Return the verdict on each host; what is wrong with the request is asked once."""
    wrong = check_request(policy, request.facts)
    found = []
    for view in views:
        rules: tuple[Reason, ...] = ()
        if settings.enforced:
            rules = rules_against(policy, request.facts, view, wrong)
        placement = _ask(view, request, settings).reasons
        offered = None if placement else _offered(policy, request, view)
        found.append(
            HostVerdict(
                view=view,
                service=tuple(_service(view, request, settings)),
                placement=placement,
                rules=rules,
                numa=() if rules else _numa(request, view, offered),
            )
        )
    return tuple(found)


def offer(
    policy: Policy,
    request: Request,
    view: HostView,
    settings: SchedulerSettings,
    wrong: tuple[Reason, ...] | None = None,
) -> Mapping[str, Mapping[str, int]] | None:
    """Return what Placement would give of a host that takes a request.

    None if the host does not take it; otherwise by provider's UUID.

    :param wrong: as :func:`rules_against` has it
    """
    if (
        (settings.enforced and rules_against(policy, request.facts, view, wrong))
        or _numa(request, view, _offered(policy, request, view))
        or any(_service(view, request, settings))
    ):
        return None
    answer = _ask(view, request, settings)
    return None if answer.reasons else answer.allocation


def _service(
    view: HostView, request: Request, settings: SchedulerSettings
) -> Iterator[Reason]:
    host = view.compute
    if request.server and request.server in {one.id for one in view.servers}:
        yield Reason(const.NOVA_SAME_HOST, {})
    if not host.enabled:
        yield Reason(const.SERVICE_DISABLED, {"why": host.disabled_reason or ""})
    if not host.up:
        yield Reason(const.SERVICE_DOWN, {"forced": host.forced_down})
    zone = request.availability_zone
    if zone and zone != host.availability_zone:
        yield Reason(
            const.NOVA_AVAILABILITY_ZONE,
            {"found": host.availability_zone, "expected": zone},
        )
    if request.project and settings.multitenancy:
        owners = projects_of(view)
        if owners and request.project not in owners:
            yield Reason(const.NOVA_TENANT_AGGREGATE, {"project": request.project})
    if request.group is not None:
        yield from groups.reasons(request.group, request.server, view)


def projects_of(view: HostView) -> set[str]:
    """Return the projects that a host's aggregates are kept for; empty for all."""
    return {
        part.strip()
        for aggregate in view.aggregates
        for key, value in aggregate.metadata.items()
        if key.startswith(TENANT_KEY)
        for part in value.split(",")
    }


def _ask(view: HostView, request: Request, settings: SchedulerSettings) -> Answer:
    """Return what Placement has, asked once more for VCPU if need be."""
    answer = ask(view, request.demand, isolated=settings.isolated)
    if not answer.reasons or not settings.fallback or request.fallback is None:
        return answer
    other = ask(view, request.fallback, isolated=settings.isolated)
    if other.reasons and any("PCPU" in p.inventories for p in view.tree):
        # Such a host is meant to be found by the first request.
        return answer
    return other


def rules_against(
    policy: Policy,
    request: RequestFacts,
    view: HostView,
    wrong: tuple[Reason, ...] | None = None,
) -> tuple[Reason, ...]:
    """Return why the rules refuse a request on a host, or cannot be asked.

    :param wrong: what ``check_request`` has said, where many hosts are asked
    """
    if wrong is None:
        reasons = decide(policy, request, view.facts).reasons
    else:
        reasons = wrong or check_host(policy, request, view.facts)
    if view.compute.cells_source != UNKNOWN:
        return reasons
    if reasons and reasons[0].code == NO_NUMA.code:
        return (Reason(const.CELLS_UNKNOWN, {}),)
    if not reasons and resolve_class(policy, request) is None:
        return (Reason(const.CELLS_UNKNOWN, {}),)
    return reasons


def _offered(policy: Policy, request: Request, view: HostView) -> frozenset[int] | None:
    """Return the NUMA nodes that Placement offers; None where it knows none."""
    return scheme_of(policy).nodes_offered(view, request.demand)


def _numa(
    request: Request, view: HostView, offered: frozenset[int] | None
) -> tuple[Reason, ...]:
    """Return why no cells are found that are asked for, or no PCI devices beside them.

    What pinned classes need, the rules have looked at.  Others may ask for cells, too,
    and on hosts that the policy does not manage no rule looks.

    :param offered: the only nodes that the filter may take, by the names that
        nova-compute knows; None for any
    """
    wanted = request.facts.cells
    if not wanted:
        return tuple(devices.reasons(request, view))
    if view.compute.cells_source == UNKNOWN:
        return ()
    cells = [c for c in view.facts.cells if offered is None or c.id in offered]
    if match_cells(request.facts, cells, view.ram_ratio) is None:
        return (no_cells(request.facts),)
    lacking = tuple(devices.reasons(request, view, cells))
    if lacking or offered is None:
        return lacking
    told = view.compute.cells
    physnets = {c.id: c.physnets for c in told if c.physnets is not None}
    found = unnamed(physnets, offered)
    return (Reason(const.NOVA_NODES_UNNAMED, {"nodes": found}),) if found else ()


def no_cells(request: RequestFacts) -> Reason:
    """Return that NUMATopologyFilter finds no NUMA nodes, and what it looks for."""
    first = request.cells[0]
    asked = {
        "cells": [[cell.vcpus, cell.pcpus] for cell in request.cells],
        "memory_mb": [cell.memory_mb for cell in request.cells],
        "page_size_kb": first.page_size_kb,
        "cpu_thread_policy": first.cpu_thread_policy,
        "emulator_threads": request.emulator_threads,
    }
    return Reason(const.NOVA_NUMA_TOPOLOGY, asked)


def match_cells(
    request: RequestFacts, cells: Sequence[NUMACell], ram_ratio: float | None = None
) -> tuple[int, ...] | None:
    """Return, for each cell of the request, the index of the host's cell.

    None without a complete matching.  By augmenting paths: a cell of the
    request may take one that is taken if its holder finds another.  Nova tries
    every order, of which there are 500 million for 8 cells on 16.
    """
    holders: dict[int, int] = {}
    wanted = request.cells
    # Nova takes the CPU of isolated emulator threads beside the first.
    extra = request.emulator_threads == "isolate" and request.pinned

    def place(number: int, tried: set[int]) -> bool:
        guest = wanted[number]
        for index, host in enumerate(cells):
            if index in tried or not node_fits(
                host, guest, extra and not number, ram_ratio=ram_ratio
            ):
                continue
            tried.add(index)
            if index not in holders or place(holders[index], tried):
                holders[index] = number
                return True
        return False

    if not all(place(number, set()) for number in range(len(wanted))):
        return None
    found = {number: index for index, number in holders.items()}
    return tuple(found[number] for number in range(len(wanted)))
