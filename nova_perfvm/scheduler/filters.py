# SPDX-License-Identifier: Apache-2.0
"""The scheduler filter: the policy's verdict on each host, with its reason."""

from __future__ import annotations

import collections
import time
from collections.abc import Iterable, Sequence

from nova import conf as nova_conf
from nova import objects
from nova.scheduler import filters
from nova.scheduler import utils as scheduler_utils
from nova.scheduler.host_manager import HostState
from oslo_log import log as logging

from nova_perfvm import conf, rules
from nova_perfvm import constants as const
from nova_perfvm.facts import HostFacts, Reason, RequestFacts
from nova_perfvm.findings import Level
from nova_perfvm.placement.schemes import scheme_of
from nova_perfvm.rules import enabled_filters
from nova_perfvm.rules.host.unreadable import UNREADABLE
from nova_perfvm.scheduler import (
    adapters,
    candidates,
    garbage,
    instances,
    numa_filter,
    residents,
    startup,
    unreadable,
)

LOG = logging.getLogger(__name__)


class PerfVMFilter(filters.BaseHostFilter):
    """Keep VMs of each class where the policy wants them, and others away.

    The filter judges what the scheduler knows: a host's NUMA nodes and pins,
    which are as old as the compute's last report.  Two schedulers at once, or
    an operator who forces a host, go past it, as past any filter.

    One instance serves all threads of the process: it holds the policy, which
    never changes, and which hosts could not be read last.
    """

    # A rebuild with a new image stays on its host, where the server itself
    # takes the slot that it needs, so hosts are not judged.  But the image may
    # turn off what the class promises (multiqueue), and nobody else looks.
    RUN_ON_REBUILD = True

    def __init__(self) -> None:
        """Read the policy; see :func:`nova_perfvm.scheduler.startup.read_policy`."""
        super().__init__()
        self.policy = startup.read_policy("PerfVMFilter")
        self._unreadable = unreadable.UnreadableHosts("PerfVMFilter")
        self._freezes = nova_conf.CONF.perfvm.freeze_objects
        enabled = nova_conf.CONF.filter_scheduler.enabled_filters
        for found in enabled_filters.judge(list(enabled), self.policy):
            level = logging.INFO if found.level is Level.NOTE else logging.WARNING
            LOG.log(level, "%s: %s: %s", found.code, found.observed, found.remedy)

    def filter_all(
        self, filter_obj_list: Iterable[HostState], spec_obj: objects.RequestSpec
    ) -> list[HostState]:
        """Return the hosts that may take the request, as often as Nova shall try.

        All hosts are judged here, not one by one, because what is wrong with
        the request itself is found and said once, and so is the summary.

        In mode ``observe`` the hosts are returned as they came, whatever happens
        here: it turns the filter off.
        """
        if self._freezes:
            # Not before: what Nova holds for good it reads after its filters.
            garbage.freeze()
        started = time.perf_counter()
        hosts = candidates.current(filter_obj_list)
        if all(host.hypervisor_type == const.IRONIC for host in hosts):
            # Nodes of bare metal, which only a request for such has.
            return hosts
        observes = conf.observes(nova_conf.CONF)
        try:
            request = self._request(spec_obj)
            passed = self._passed(hosts, spec_obj, request, started, observes=observes)
        except Exception:
            LOG.exception(
                "PerfVMFilter cannot judge the request of %s", spec_obj.instance_uuid
            )
            if observes:
                return hosts
            raise
        if observes:
            return hosts
        if self._divides(request):
            return candidates.attempts(passed, spec_obj)
        return passed

    def _passed(
        self,
        hosts: Sequence[HostState],
        spec_obj: objects.RequestSpec,
        request: RequestFacts,
        started: float,
        *,
        observes: bool,
    ) -> list[HostState]:
        """Judge the hosts, log it, and return those that may take the request.

        A line a request: ``etc/nova_perfvm/mtail/perfvm.mtail`` counts them.
        """
        rejects = "would reject" if observes else "rejected"
        at_home = None
        if scheduler_utils.request_is_rebuild(spec_obj):
            # A user can have said so, in a scheduler hint; and Nova claims
            # nothing for such a request.
            request = request._replace(claimed=False)
            at_home = instances.rebuilt_on(spec_obj.instance_uuid)
        reasons = () if at_home else rules.check_request(self.policy, request)
        if reasons:
            LOG.info(
                "PerfVMFilter %s %s on every host (perfvm:class=%s, flavor %s) "
                "in %.1f ms: %s",
                rejects,
                spec_obj.instance_uuid,
                request.class_name,
                request.flavor,
                (time.perf_counter() - started) * 1000,
                _words(reasons),
            )
            return []

        debug = LOG.isEnabledFor(logging.DEBUG)
        seen = residents.Residents(hosts)
        passed = []
        counts: collections.Counter[str] = collections.Counter()
        for host_state in hosts:
            host, reasons = self._judge(request, host_state, seen, at_home)
            if reasons:
                counts[reasons[0].code] += 1
            else:
                passed.append(host_state)
            if debug:
                LOG.debug(
                    "(%s, %s) %s",
                    host.host,
                    host.nodename,
                    f"refused: {_words(reasons)}" if reasons else "passes",
                    instance_uuid=spec_obj.instance_uuid,
                )
        codes = ", ".join(f"{n} {code}" for code, n in counts.most_common())
        vm_class = rules.resolve_class(self.policy, request)
        LOG.info(
            "PerfVMFilter %s %d of %d hosts for %s (class %s, flavor %s) in %.1f ms%s",
            rejects if counts else "passed",
            counts.total() or len(hosts),
            len(hosts),
            spec_obj.instance_uuid,
            "none" if vm_class is None else vm_class.name,
            request.flavor,
            (time.perf_counter() - started) * 1000,
            f": {codes}" if codes else "",
        )
        return passed

    def _check(
        self, request: RequestFacts, host: HostFacts, seen: residents.Residents
    ) -> tuple[Reason, ...]:
        """Return why a host may not take a request.

        Who is on it is looked up last, as that takes queries.
        """
        reasons = rules.check_host(self.policy, request, host)
        if reasons:
            return reasons
        pinned = rules.vms_by_pins(self.policy, request, host)
        if pinned is None:
            return ()
        unpinned = seen.unpinned(host.host, pinned)
        if not unpinned:
            return ()
        host = host._replace(unpinned=unpinned)
        return rules.check_host(self.policy, request, host)

    def host_passes(
        self, host_state: HostState, filter_properties: objects.RequestSpec
    ) -> bool:
        """Judge one host; Nova's filter handler uses :meth:`filter_all`."""
        return bool(self.filter_all([host_state], filter_properties))

    def _judge(
        self,
        request: RequestFacts,
        host_state: HostState,
        seen: residents.Residents,
        at_home: tuple[str, str] | None = None,
    ) -> tuple[HostFacts, tuple[Reason, ...]]:
        """Return a host's facts, and why it may not take a request.

        A host whose facts cannot be read is refused, and the others are judged.

        :param seen: who is on the hosts
        :param at_home: host and node of a server that is rebuilt there
        """
        name = unreadable.name_of(host_state)
        try:
            host = adapters.host_facts(host_state)
            if (host.host, host.nodename) == at_home:
                reasons = rules.check_image(self.policy, request, host.labels)
            else:
                reasons = self._check(request, host, seen)
            if not reasons and self._divides(request):
                candidates.check(host_state)
        except Exception as exc:  # noqa: BLE001  a host's, whatever it is
            error = adapters.in_words(exc)
            host = HostFacts(*name, (), unreadable=error)
            reasons = (UNREADABLE.because(error=error),)
        if reasons and reasons[0].code == UNREADABLE.code:
            self._unreadable.found(name, request.flavor, reasons[0].data["error"])
        else:
            self._unreadable.read(name, request.flavor)
        return host, reasons

    def _divides(self, request: RequestFacts) -> bool:
        """Return whether Nova shall try each free child of a host."""
        return scheme_of(self.policy).tries_each(request)

    def _request(self, spec_obj: objects.RequestSpec) -> RequestFacts:
        """Return what is asked for; of a former size, with the server's vCPUs today.

        To look that up takes queries, so it is done for no other request.
        """
        request = adapters.request_facts(spec_obj)
        if rules.is_former_size(self.policy, request):
            return request._replace(running_vcpus=instances.running_vcpus(spec_obj))
        return request


def _words(reasons: Iterable[Reason]) -> str:
    return "; ".join(f"{r.code}: {rules.describe(r)}" for r in reasons)


def all_filters() -> list[type[filters.BaseHostFilter]]:
    """Return the filters of this package, for [filter_scheduler]available_filters."""
    return [PerfVMFilter, numa_filter.PerfVMNUMATopologyFilter]
