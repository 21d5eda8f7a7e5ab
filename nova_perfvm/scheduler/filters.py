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
    """Pass the hosts that the policy allows for a request.

    The filter judges a host's NUMA nodes and pins as nova-compute last reported them.
    It cannot stop two schedulers that choose the same host at once, nor an operator who
    forces a host; no filter can.

    One instance serves all threads of the process.  It holds the policy, which never
    changes, and the hosts that it could not read last.
    """

    # A rebuild stays on its host, whose slot the server itself occupies, so the host's
    # room is not judged.  But the new image may break the rules that an image alone can
    # break (``image=True``), and no other check sees that.
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
        """Return the hosts that may take the request.

        An elastic host comes as several HostStates, one for each free child
        (:func:`.candidates.attempts`).  All hosts are judged in one call, so that the
        request's own mistakes and the summary are logged once.

        In mode ``observe`` all hosts pass, even if judging them raises an error.
        """
        if self._freezes:
            # Not in __init__: Nova loads more permanent objects after its filters.
            garbage.freeze()
        started = time.perf_counter()
        hosts = candidates.current(filter_obj_list)
        if all(host.hypervisor_type == const.IRONIC for host in hosts):
            # Only requests for bare metal come with Ironic nodes.
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
        """Return the hosts that may take the request, and log one summary line.

        ``etc/nova_perfvm/mtail/perfvm.mtail`` counts these lines.

        :param started: time.perf_counter() at the start of the request
        :param observes: whether the mode is ``observe``, for the wording of the log
        """
        rejects = "would reject" if observes else "rejected"
        at_home = None
        if scheduler_utils.request_is_rebuild(spec_obj):
            # Nova claims nothing for a rebuild.  A user can pass off another request as
            # a rebuild by a scheduler hint, so look at the server's record.
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
        """Return why a host may not take a request; empty if it may.

        The VMs on the host are looked up last, as that needs database queries.
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

        An error while judging the host refuses this host alone.

        :param seen: the VMs on the request's hosts
        :param at_home: host and node on which the request rebuilds its server
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
        except Exception as exc:  # noqa: BLE001  the other hosts are still judged
            error = adapters.in_words(exc)
            host = HostFacts(*name, (), unreadable=error)
            reasons = (UNREADABLE.because(error=error),)
        if reasons and reasons[0].code == UNREADABLE.code:
            self._unreadable.found(name, request.flavor, reasons[0].data["error"])
        else:
            self._unreadable.read(name, request.flavor)
        return host, reasons

    def _divides(self, request: RequestFacts) -> bool:
        """Return whether Nova is to try each free child of a host for the request."""
        return scheme_of(self.policy).tries_each(request)

    def _request(self, spec_obj: objects.RequestSpec) -> RequestFacts:
        """Return the request's facts; for a former size also the server's vCPUs.

        Looking up the server needs database queries, so other requests go without.
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
