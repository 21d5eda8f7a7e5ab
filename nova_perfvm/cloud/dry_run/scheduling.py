# SPDX-License-Identifier: Apache-2.0
"""Select hosts as ``SchedulerManager.select_destinations`` does, but claim nothing."""

from __future__ import annotations

import collections
import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nova import context as nova_context
from nova import exception, objects, weights
from nova.conf import CONF
from nova.db.main import api as main_db
from nova.db.main import models
from nova.scheduler import host_manager, request_filter
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.host_manager import HostState

from nova_perfvm.cloud.dry_run.candidates import candidates_of
from nova_perfvm.cloud.dry_run.no_writes import no_writes
from nova_perfvm.cloud.dry_run.request import Asked, RequestRefusedError, asked
from nova_perfvm.facts.dry_run import (
    DESTINATION,
    NO_STATE,
    Question,
    SchedulerAnswer,
    WeigherShare,
)
from nova_perfvm.printable import first_line

# (name of a host, name of its node).
Key = tuple[str, str]
# Placement's provider summaries, by UUID.
Summaries = Mapping[str, Any]


def _key(host: HostState) -> Key:
    return host.host, host.nodename


@main_db.pick_context_manager_reader
def _servers_of(
    context: nova_context.RequestContext, hosts: Sequence[str]
) -> list[tuple[str, str]]:
    """Return (host, UUID) of each server of one cell on the given hosts."""
    row = models.Instance
    found = context.session.query(row.host, row.uuid).filter(row.deleted == 0)
    return [tuple(one) for one in found.filter(row.host.in_(hosts))]


class BatchedHostManager(host_manager.HostManager):  # type: ignore[misc]
    """Nova's HostManager, but it reads the servers of all hosts of a cell in one query.

    A running nova-scheduler learns the servers from nova-compute; a new process would
    query each host's servers separately.
    """

    def __init__(self) -> None:
        super().__init__()
        self.track_instance_changes = False
        self.unseen: set[str] = set()
        self._servers: dict[str, dict[str, objects.Instance]] = {}

    def _init_instance_info(self, computes_by_cell: Any = None) -> None:
        """Read no servers: ``_get_computes_for_cells`` reads them later."""

    def _get_computes_for_cells(
        self, context: nova_context.RequestContext, cells: Any, compute_uuids: Any
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        nodes, services = super()._get_computes_for_cells(context, cells, compute_uuids)
        # A cell that answers is in `nodes`, even if its list is empty.
        self.unseen = {one.name or one.uuid for one in cells if one.uuid not in nodes}
        self._servers = {}
        for cell in cells:
            hosts = [node.host for node in nodes.get(cell.uuid, ())]
            if not hosts:
                continue
            with nova_context.target_cell(context, cell) as targeted:
                for host, uuid in _servers_of(targeted, hosts):
                    server = objects.Instance(targeted, uuid=uuid)
                    self._servers.setdefault(host, {})[uuid] = server
        return nodes, services

    def _get_instance_info(
        self, _context: nova_context.RequestContext, compute: objects.ComputeNode
    ) -> dict[str, objects.Instance]:
        return self._servers.get(compute.host, {})


class Tracing:
    """Replaces Nova's filter handler, and remembers which filters refused each host.

    :ivar by: names of the filters that refuse a host, in the order of the filters
    """

    def __init__(self, *, every: bool) -> None:
        self._every = every
        self.by: dict[Key, list[str]] = {}

    def get_filtered_objects(
        self,
        filters: Iterable[Any],
        objs: Iterable[HostState],
        spec_obj: objects.RequestSpec,
        index: int = 0,
    ) -> list[HostState]:
        """Return the hosts that pass all filters."""
        hosts = list(objs)
        self.by = {_key(host): [] for host in hosts}
        asked_of = [one for one in filters if one.run_filter_for_index(index)]
        for number, one in enumerate(asked_of):
            before = {_key(h): (h, list(h.allocation_candidates)) for h in hosts}
            hosts = _passing(one, hosts, spec_obj)
            behind = asked_of[number + 1 :] if self._every else ()
            for key in before.keys() - set(map(_key, hosts)):
                host = _copy(*before[key])
                self.by[key] += [type(one).__name__, *_refusing(behind, host, spec_obj)]
        return hosts


def _passing(
    one: Any, hosts: Sequence[HostState], spec_obj: objects.RequestSpec
) -> list[HostState]:
    """Return the hosts that pass a filter and keep an allocation candidate.

    NUMATopologyFilter and PciPassthroughFilter remove candidates, and Nova claims
    nothing on a host without candidates.
    """
    had = {_key(host) for host in hosts if host.allocation_candidates}
    passed = list(one.filter_all(hosts, spec_obj) or ())
    return [h for h in passed if h.allocation_candidates or _key(h) not in had]


def _refusing(
    behind: Iterable[Any], host: HostState, spec_obj: objects.RequestSpec
) -> Iterator[str]:
    """Yield the names of the later filters that refuse a host, too."""
    for one in behind:
        tried = _copy(host, host.allocation_candidates)
        if not _passing(one, [tried], copy.deepcopy(spec_obj)):
            yield type(one).__name__


def _copy(host: HostState, candidates: Sequence[Any]) -> HostState:
    """Return a copy of a host that a filter may modify."""
    found = copy.copy(host)
    found.limits = dict(host.limits)
    found.allocation_candidates = copy.deepcopy(list(candidates))
    return found


class DryRun:
    """nova-scheduler as a nova.conf configures it, without its claims.

    Cells and aggregates are read once, as nova-scheduler reads them when it starts.
    """

    def __init__(self) -> None:
        objects.register_all()
        self._hosts = BatchedHostManager()

    def answer(self, question: Question) -> SchedulerAnswer:
        with no_writes():
            try:
                found = asked(nova_context.get_admin_context(), question)
            except RequestRefusedError as exc:
                return SchedulerAnswer(refused=str(exc))
            return self.judge(found, count=question.count, every=question.every)

    def judge(
        self, found: Asked, *, count: int = 1, every: bool = False
    ) -> SchedulerAnswer:
        """Schedule a RequestSpec, and return the result.

        :param count: the number of servers that are requested at once
        :param every: whether filters after the one that refuses a host are asked, too
        """
        try:
            added = tuple(_prefiltered(found))
            candidates, summaries = self._offered(found)
        except RequestRefusedError as exc:
            return SchedulerAnswer(refused=str(exc))
        answer = self._scheduled(found, candidates, summaries, count, every=every)
        return replace(answer, added=added, notes=tuple(dict.fromkeys(found.notes)))

    def _offered(self, found: Asked) -> tuple[list[dict[str, Any]], Summaries]:
        """Ask Placement for candidates as ``select_destinations`` does.

        All candidates are read; notes tell if Nova's limit would cut them, or if
        Placement refuses the query.

        :raises RequestRefusedError: when Nova cannot make the query
        :raises NoCandidatesError: when Placement cannot be reached, or fails
        """
        candidates: list[dict[str, Any]] = []
        summaries: dict[str, Any] = {}
        # First with PCPU, into which Nova translates the vCPUs of pinned VMs, then with
        # VCPU.
        for translated in (True, False):
            try:
                query = scheduler_utils.resources_from_request_spec(
                    found.context,
                    found.spec,
                    self._hosts,
                    enable_pinning_translate=translated,
                )
            except exception.NovaException as exc:
                # NoValidHost, or keys of flavor and image that conflict.
                raise RequestRefusedError(_refusal(exc)) from exc
            limit, query._limit = query._limit, None  # noqa: SLF001
            more, of_providers, fault = candidates_of(found.context, query)
            candidates += more
            summaries.update(of_providers)
            if fault:
                found.notes.append(f"Placement refuses the query: {fault}")
            if limit is not None and len(more) > limit:
                found.notes.append(
                    f"nova-scheduler reads {limit} of {len(more)} allocation "
                    "candidates ([scheduler]max_placement_results), and considers no "
                    "host behind them"
                )
            fallback = not CONF.workarounds.disable_fallback_pcpu_query
            if not (query.cpu_pinning_requested and fallback):
                break
        return candidates, summaries

    def _scheduled(
        self,
        found: Asked,
        candidates: Sequence[dict[str, Any]],
        summaries: Summaries,
        count: int,
        *,
        every: bool,
    ) -> SchedulerAnswer:
        by_provider = collections.defaultdict(list)
        for candidate in candidates:
            for uuid in candidate["allocations"]:
                by_provider[uuid].append(candidate)
        states = self._hosts.get_host_states_by_uuids(
            found.context.elevated(), list(summaries), found.spec
        )
        # The state of a node that nova-compute has yet to report has neither a UUID nor
        # figures, with which weighers of Nova fail.
        hosts = [state for state in states if state.uuid]
        for host in hosts:
            host.allocation_candidates = copy.deepcopy(by_provider.get(host.uuid, []))
        handler = self._hosts.filter_handler = Tracing(every=every)
        passed = self._filtered(hosts, found.spec, 0)
        left = set(map(_key, passed))
        # Providers of PCI devices and NUMA nodes are below the root provider of their
        # host.
        roots = {
            summaries[uuid].get("root_provider_uuid") or uuid for uuid in by_provider
        }
        offered: dict[str, tuple[str, ...]] = dict.fromkeys(roots, (NO_STATE,))
        for host in hosts:
            # Nova does not ask filters about hosts that the request excludes, nor about
            # any host if an administrator forces one.
            here = [] if _key(host) in left else [DESTINATION]
            offered[host.uuid] = tuple(handler.by.get(_key(host), here))
        ranked, order = self._ranked(passed, found.spec)
        return SchedulerAnswer(
            sources=found.sources,
            offered=offered,
            unseen=tuple(sorted(self._hosts.unseen)),
            weighers=tuple(type(one).__name__ for one in self._hosts.weighers),
            ranked=ranked,
            placed=tuple(self._placed(count, found.spec, order, summaries)),
        )

    def _filtered(
        self, hosts: Sequence[HostState], spec: objects.RequestSpec, index: int
    ) -> list[HostState]:
        return list(self._hosts.get_filtered_hosts(list(hosts), spec, index))

    def _ranked(
        self, hosts: Sequence[HostState], spec: objects.RequestSpec
    ) -> tuple[list[tuple[str, list[WeigherShare]]], list[HostState]]:
        """Weigh hosts as ``nova.weights.BaseWeightHandler`` does.

        :returns: (UUID, the share of each weigher) of each host, and the hosts; both
            best first
        """
        weighed = [weights.WeighedObject(host, 0.0) for host in hosts]
        shares: list[list[WeigherShare]] = [[] for _ in weighed]
        for weigher in self._hosts.weighers if hosts[1:] else ():
            raws = list(weigher.weigh_objects(weighed, spec))
            scaled = weights.normalize(
                raws, minval=weigher.minval, maxval=weigher.maxval
            )
            for one, mine, raw, share in zip(
                weighed, shares, raws, scaled, strict=True
            ):
                multiplier = weigher.weight_multiplier(one.obj)
                mine.append(WeigherShare(float(raw), float(share), float(multiplier)))
                one.weight += multiplier * share
        both = sorted(zip(weighed, shares, strict=True), key=lambda one: -one[0].weight)
        ranked = [(one.obj.uuid, mine) for one, mine in both]
        return ranked, [one.obj for one, _ in both]

    def _placed(
        self,
        count: int,
        spec: objects.RequestSpec,
        order: Sequence[HostState],
        summaries: Summaries,
    ) -> Iterator[str]:
        """Yield the hosts of servers that are requested at once.

        Nova asks Placement once, and subtracts each selected server from the host
        states; the claims, which Placement counts, are counted here by
        :class:`_Claims`.  A host that a filter refused stays out for all servers after
        it: Nova asks some filters once (``run_filter_once_per_request``).

        :param order: the host states that passed all filters for the first server, best
            first
        """
        claims = _Claims(summaries)
        for number in range(count):
            if number:
                order = self._ranked(self._filtered(order, spec, number), spec)[1]
            host = next((one for one in order if claims.claim(one)), None)
            if host is None:
                return
            yield host.host
            if number + 1 == count:
                return
            mappings = host.allocation_candidates[0].get("mappings", {})
            for group in spec.requested_resources or ():
                group.provider_uuids = mappings.get(group.requester_id, [])
            host.consume_from_request(spec)
            if spec.instance_group is not None:
                spec.instance_group.hosts.append(host.host)
                spec.instance_group.obj_reset_changes(["hosts"])


class _Claims:
    """The free amounts of Placement's inventories after earlier servers' claims."""

    def __init__(self, summaries: Summaries) -> None:
        self._left = {
            (uuid, name): figures["capacity"] - figures["used"]
            for uuid, summary in summaries.items()
            for name, figures in summary["resources"].items()
        }

    def claim(self, host: HostState) -> bool:
        """Claim the first candidate of a host; return whether it was still free."""
        if not host.allocation_candidates:
            return False
        wanted = {
            (uuid, name): amount
            for uuid, given in host.allocation_candidates[0]["allocations"].items()
            for name, amount in given["resources"].items()
        }
        if any(self._left.get(key, 0) < amount for key, amount in wanted.items()):
            return False
        for key, amount in wanted.items():
            self._left[key] -= amount
        return True


def _prefiltered(found: Asked) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Let each prefilter modify the request; yield its name and its additions.

    :raises RequestRefusedError: when a prefilter refuses the request
    """
    for prefilter in request_filter.ALL_REQUEST_FILTERS:
        before = set(_asked_of_placement(found.spec))
        try:
            prefilter(found.context, found.spec)
        except exception.NovaException as exc:
            raise RequestRefusedError(f"{prefilter.__name__}: {_refusal(exc)}") from exc
        more = sorted(set(_asked_of_placement(found.spec)) - before)
        if more:
            yield prefilter.__name__, tuple(more)


def _refusal(exc: exception.NovaException) -> str:
    """Return the exception that ends a request in nova-scheduler, as Nova shows it."""
    return f"{type(exc).__name__}: {first_line(exc)}"


def _asked_of_placement(spec: objects.RequestSpec) -> Iterator[str]:
    """Yield the traits, aggregates and groups that a request asks Placement for."""
    yield from (f"required={trait}" for trait in spec.root_required)
    yield from (f"required=!{trait}" for trait in spec.root_forbidden)
    destination = spec.requested_destination
    if destination is not None:
        yield from (f"member_of={one}" for one in destination.aggregates or ())
        yield from (
            f"member_of=!{one}" for one in destination.forbidden_aggregates or ()
        )
    for group in spec.requested_resources or ():
        yield f"group {group.requester_id}: {sorted((group.resources or {}).items())}"
